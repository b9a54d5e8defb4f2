#!/bin/sh
# Checks the subject of a commit's message. Installed by `cargo xtask hooks`.
subject=$(sed -n '/^[^#]/{p;q;}' "$1")
case "$subject" in
    'Merge '* | 'Revert '* | 'fixup! '* | 'squash! '*) exit 0 ;;
esac
if ! printf '%s\n' "$subject" | grep -Eq '^[a-z0-9_., -]+: [a-z]'; then
    echo "error: the subject is \`$subject\`" >&2
    echo "help: write \`place: imperative verb ...\`, for example \`store: let every caller wake the writer\`" >&2
    exit 1
fi
if [ "$(printf '%s' "$subject" | wc -m)" -gt 72 ]; then
    echo "error: the subject has more than 72 characters: $subject" >&2
    echo "help: say the rest in the body, after an empty line" >&2
    exit 1
fi
