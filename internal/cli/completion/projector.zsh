#compdef projector
# Completes the commands, flags and values of projector in zsh. It asks the program itself for them.
compdef _projector projector

_projector() {
  local program=${~${(Q)words[1]}} line text about
  local -a whole unfinished

  for line in "${(@f)$("$program" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
    text=${line%%$'\t'*}
    about=${line#*$'\t'}
    if [[ $text == ':files' ]]; then
      compset -P '--[^=]#='
      _files
      return
    fi
    [[ -n $text ]] || continue
    text=${text//:/\\:}
    [[ -n $about && $about != $line ]] && text+=:$about
    if [[ ${text%%:*} == *= ]]; then
      unfinished+=("$text")
    else
      whole+=("$text")
    fi
  done

  # A flag that needs a value is not complete, so no space is added.
  local -i found=1
  ((${#unfinished})) && _describe -t flags 'flag' unfinished -S '' && found=0
  ((${#whole})) && _describe -t words 'word' whole && found=0
  return found
}

# If zsh loads this file by name from a folder of fpath, the file is the body of the function at the
# first call.
if [[ ${funcstack[1]} == _projector ]]; then
  _projector "$@"
fi
