#!/usr/bin/env bash
# Checks the C and C++ sources with clang-format and the scripts with shellcheck; exits 77 (skipped) where they are absent.
# Another version than 14 lays out some lines in another way, so it is not asked.
set -euo pipefail
cd "$1"

skip() { printf 'skipped: %s\n' "$1" && exit 77; }

check_cpp() {
  local formatter
  formatter=$(command -v clang-format-14 || command -v clang-format) || skip "no clang-format here"
  [[ $("$formatter" --version) == *"version 14."* ]] || skip "clang-format is not version 14"
  local file failed=0
  while IFS= read -r -d '' file; do
    "$formatter" --dry-run -Werror "$file" 2>/dev/null && continue
    printf '%s: run clang-format -i on it\n' "$file"
    failed=1
  done < <(find base topology collectives simulation models reports bench docs tests scripts \( -name '*.[ch]pp' -o -name '*.[ch]' \) -print0 | sort -z)
  return $failed
}

check_scripts() {
  command -v shellcheck >/dev/null || skip "no shellcheck here"
  grep -rlE '^#!.*bash' scripts .ci tests | xargs shellcheck -x
}

"check_$2"
