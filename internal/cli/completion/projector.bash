# Completes the commands, flags and values of projector in bash 3.2 or newer. It asks the program
# itself for them.

_projector() {
  local word last i before='' words=()
  COMPREPLY=()

  # Bash splits --flag=value at "=", but the program needs it as one word.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    last=''
    ((${#words[@]} > 0)) && last=${words[${#words[@]} - 1]}
    if [[ $word == '=' && $last == --* && $last != *=* ]] || [[ $last == --*= && $COMP_WORDBREAKS == *=* ]]; then
      words[${#words[@]} - 1]=$last$word
    else
      words+=("$word")
    fi
  done

  # Bash replaces only the text after the "=".
  last=${words[${#words[@]} - 1]}
  [[ $last == --*=* && $COMP_WORDBREAKS == *=* ]] && before=${last%%=*}=

  while IFS=$'\t' read -r word _; do
    if [[ $word == ':files' ]]; then
      # Readline completes file names best, but compopt works only during a completion and since
      # bash 4.0.
      compopt -o default 2>/dev/null ||
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "${last#"$before"}")
    else
      COMPREPLY+=("${word#"$before"}")
    fi
  done < <("${COMP_WORDS[0]/#\~/$HOME}" __complete "${words[@]}" 2>/dev/null)

  # A flag that needs a value is not complete, so no space is added.
  if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2>/dev/null
  fi
  return 0
}

complete -F _projector projector
