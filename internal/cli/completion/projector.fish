# Completes the commands, flags and values of projector in fish 3.0 or newer. It asks the program
# itself for them.

function __projector_suggest
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]

    for line in ($program __complete $words "$current" 2>/dev/null)
        if test "$line" = ':files'
            set -l before (string match -r -- '^--[^=]+=' "$current")
            set -l name (string replace -r -- '^--[^=]+=' '' "$current")
            for path in (__fish_complete_path "$name")
                echo "$before$path"
            end
        else
            echo $line
        end
    end
end

complete -c projector -f -a '(__projector_suggest)'
