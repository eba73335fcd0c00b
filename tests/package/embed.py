#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""embed.py GENERATOR CC: what the generator makes of tuning tables holds their text, in order, byte for byte."""
import os
import subprocess
import sys
import tempfile

generator, cc = sys.argv[1], sys.argv[2:]

PRINT = r"""
#include "tables.inc"
#include <stdio.h>
int main(void) {
  for (int i = 0; bqr_tuning_tables[i].name; i++)
    printf("%d|%s|%s|", bqr_tuning_tables[i].sm, bqr_tuning_tables[i].name, bqr_tuning_tables[i].text);
  printf("%s|%s|", bqr_child_table.name, bqr_child_table.text);
  return 0;
}
"""
CHILDREN = b"batchqr-tuning 1\n"
TABLES = {  # in the order in which they must come out
    "sm_80.tune": b"",
    "sm_90.tune": b'# a "quoted" \\ line, \xc3\xa4, ??/\r\nbatchqr-tuning 1\n' + b"# long\n" * 2000,
    "sm_100.tune": b"batchqr-tuning 1\nno newline at the end",
}


def generate(directory, contents):
    children = os.path.join(directory, "children.tune")
    with open(children, "wb") as file:
        file.write(CHILDREN)
    for name, text in contents.items():
        with open(os.path.join(directory, name), "wb") as file:
            file.write(text)
    paths = [os.path.join(directory, name) for name in reversed(contents)]
    output = os.path.join(directory, "tables.inc")
    return subprocess.run([sys.executable, generator, output, children, *paths], capture_output=True, check=False).returncode


def compiled(directory, contents):
    assert generate(directory, contents) == 0
    program = os.path.join(directory, "print")
    with open(program + ".c", "w", encoding="ascii") as file:
        file.write(PRINT)
    subprocess.run([*cc, "-Wall", "-Wextra", "-Wpedantic", "-Werror", program + ".c", "-o", program], check=True)
    return subprocess.run([program], check=True, capture_output=True).stdout


for tables in TABLES, {}:
    with tempfile.TemporaryDirectory() as scratch:
        expected = b"".join(b"%d|%s|%s|" % (int(name[3:-5]), name.encode(), text) for name, text in tables.items())
        expected += b"children.tune|" + CHILDREN + b"|"
        assert compiled(scratch, tables) == expected
for bad in {"hopper.tune": b""}, {"sm_90.tune": b"a\0b"}:
    with tempfile.TemporaryDirectory() as scratch:
        assert generate(scratch, bad) != 0
        assert not os.path.exists(os.path.join(scratch, "tables.inc"))
