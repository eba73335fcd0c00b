#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""state.py LIBRARY: the static library's writable data are those that docs/decisions/0019-state-of-the-process.md names."""
import re
import subprocess
import sys

KNOWN = {"blas", "create_error", "starter"}
# What compilers and NVTX's header add.
ADDED = re.compile(r"__cuda|__nv_|(guard variable for )?__device_stub__|DW\.ref\.|nvtxGlobals|InitializeInjectionNvtx")

table = subprocess.run(["nm", "--demangle", "--format=sysv", sys.argv[1]], check=True, capture_output=True, text=True)
# A symbol's name, value, class, type, size, line and section.
symbols = [[field.strip() for field in line.split("|")] for line in table.stdout.splitlines() if line.count("|") >= 6]
writable = {re.sub(r"\.\d+$", "", symbol[0]) for symbol in symbols
            if re.match(r"\.t?(bss|data)|\*COM\*", symbol[-1]) and not symbol[-1].startswith(".data.rel.ro")}
found = {name for name in writable if not ADDED.match(name)}

for name in sorted(found - KNOWN):
    print(f"the process keeps {name}")
print(f"{len(symbols)} symbols, writable: {', '.join(sorted(found))}")
sys.exit(not symbols or not found <= KNOWN)
