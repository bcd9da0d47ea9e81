# Completion for fish. Tools, options and their values come from the program.

function __redoubt_tools
    redoubt help 2>/dev/null | string replace -rf '^  ([a-z][a-z0-9-]*)  +(.*)' '$1\t$2'
end

function __redoubt_list
    set -l words (commandline -opc)
    redoubt $words[2] --list-options 2>/dev/null
end

function __redoubt_options
    for line in (__redoubt_list)
        set -l parts (string split ' ' -- $line)
        echo $parts[1]
        if set -q parts[2]
            for value in (string split '|' -- $parts[2])
                echo $parts[1]=$value
            end
        end
    end
end

# The values of the option before the cursor.
function __redoubt_values
    set -l words (commandline -opc)
    __redoubt_list | string replace -rf -- "^$words[-1] (.*)" '$1' | string split '|'
end

complete -c redoubt -n __fish_is_first_arg -f -a '(__redoubt_tools)'
complete -c redoubt -n '__fish_seen_subcommand_from help' -f -a '(__redoubt_tools)'
complete -c redoubt -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__redoubt_options)'
complete -c redoubt -n 'string match -q -- "--*" (commandline -opc)[-1]' -a '(__redoubt_values)'
