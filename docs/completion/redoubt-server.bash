# Completion for bash. The names of the directives come from the sample configuration.

_redoubt_server() {
    local current=${COMP_WORDS[COMP_CWORD]} words=
    local config=${REDOUBT_SERVER_CONF:-/usr/share/doc/redoubt/redoubt-server.conf}
    COMPREPLY=()
    [[ $current == -* ]] || return # other words are files or values
    words="--version --help --check-system --test-memory"
    if [ -r "$config" ]; then
        words+=" $(sed -n 's/^#\{0,1\}\([a-z][a-z_-]*\) .*/--\1/p' "$config" | sort -u)"
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -o default -F _redoubt_server redoubt-server
