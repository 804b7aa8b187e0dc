"""``mam completion``: the script that teaches a shell to complete ``mam``.

The scripts know nothing about mam. They hand the words typed so far to
``mam __complete``, which answers with candidates, or with ``:files`` or
``:folders`` where the shell itself knows best.
"""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.terminal import put

_BASH = r"""# bash completion of mam; put this into ~/.bashrc:
#     source <(mam completion bash)
_mam() {
    local program=${COMP_WORDS[0]/#\~/$HOME} reply line
    COMPREPLY=()
    # The line, not the words: bash has cut those at every colon of a label.
    reply=$("$program" __complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
    case $reply in
        '') ;;
        :files) compopt -o default 2>/dev/null ;;
        :folders) compopt -o dirnames 2>/dev/null ;;
        *) while IFS= read -r line; do COMPREPLY+=("$line"); done <<<"$reply" ;;
    esac
}
complete -F _mam mam"""

_ZSH = r"""#compdef mam
# zsh completion of mam; put this into ~/.zshrc after compinit:
#     source <(mam completion zsh)
_mam() {
    local -a reply names shown
    local line
    reply=("${(@f)$("${(Q)words[1]/#\~/$HOME}" __complete zsh \
        "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
    case $reply[1] in
        '') return 1 ;;
        :files) _files ;;
        :folders) _files -/ ;;
        *)
            for line in $reply; do
                names+=("${line%%$'\t'*}")
                shown+=("${line/$'\t'/  -- }")
            done
            compadd -l -d shown -a names
            ;;
    esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _mam "$@"
else
    compdef _mam mam
fi"""

_FISH = r"""# fish completion of mam; put this into ~/.config/fish/config.fish:
#     mam completion fish | source
function __mam_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    test -n "$current"; or set current ""
    set -l program (string replace -r '^~' $HOME -- $words[1])
    set -l reply ($program __complete fish $words[2..-1] "$current" 2>/dev/null)
    switch "$reply[1]"
        case ':files'
            __fish_complete_path "$current"
        case ':folders'
            __fish_complete_directories "$current"
        case '*'
            printf '%s\n' $reply
    end
end
complete -c mam -f -a '(__mam_complete)'"""

#: By shell; a wheel carries them, too.
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=sorted(SCRIPTS), metavar="SHELL", help="bash, zsh, fish")


def run(args: argparse.Namespace, context: Context) -> int:
    put([SCRIPTS[args.shell]])
    return 0
