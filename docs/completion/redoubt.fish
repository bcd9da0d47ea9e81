# Completion for fish. Tools and options come from the program's help.

function __redoubt_tools
    redoubt help 2>/dev/null | string replace -rf '^  ([a-z][a-z0-9-]*)  +(.*)' '$1\t$2'
end

function __redoubt_options
    set -l words (commandline -opc)
    redoubt $words[2] --help 2>/dev/null | string match -r '^  .*' | string match -ra -- '--[a-z][a-z0-9-]*'
end

complete -c redoubt -n __fish_is_first_arg -f -a '(__redoubt_tools)'
complete -c redoubt -n '__fish_seen_subcommand_from help' -f -a '(__redoubt_tools)'
complete -c redoubt -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__redoubt_options)'
