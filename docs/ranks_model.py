#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The model of docs/ranks.md: times on 8, 64 and 1024 GPUs, of numbers measured on one and two H200s.

ranks_model.py [--svg FILE]   prints the page's table; draws its picture
ranks_model.py --check PAGE   whether the page has the table as it is printed
"""
import math
import sys

# Measured on an H200 (double precision), see docs/performance.md.
READ = 3.3e12  # bytes a second of R of a tall matrix
RATE = 45e12  # operations a second of large products
TALL_RATE = 20e12  # of a factorization of 512 columns
LINK = 391e9  # bytes a second by NVLink from one GPU to another
# Taken from their makers' data.
NETWORK = 50e9  # one adapter of 400 Gbit/s for each GPU
START, HOP = 20e-6, 4e-6  # a collective call, and each doubling of the ranks
NODE = 8  # GPUs that NVLink joins
SIZE = 8  # bytes of a double


def link(ranks):
    return LINK if ranks <= NODE else NETWORK


def gather(ranks, size):
    """An all-gather of `size` bytes from each."""
    return 0 if ranks == 1 else START + HOP * math.log2(ranks) + (ranks - 1) * size / link(ranks)


def broadcast(ranks, size):
    """In a ring of pieces: each byte leaves each GPU once."""
    return 0 if ranks == 1 else START + HOP * math.log2(ranks) + size / link(ranks)


def panel(rows, cols):
    """R and reflectors of a tall matrix: 64 columns take 32 us with 2048 rows, 49 with 16384, 81 with 65536."""
    one = 25e-6 + 9e-7 * rows**0.37 if rows <= 65536 else 81e-6 * rows / 65536
    return max(1, cols / 64) * one + 2 * rows * cols**2 / TALL_RATE


def tsqr(ranks, rows, cols):
    """R of a matrix by rows."""
    own = rows / ranks
    local = max(own * cols * SIZE / READ, 2 * own * cols**2 / TALL_RATE) + 30e-6
    if ranks == 1:
        return local
    return local + gather(ranks, cols**2 * SIZE) + panel(ranks * cols, cols)


def square(ranks, n, block=512):
    """QR of a large matrix by blocks of columns: the next panel is updated, factored and sent beside the update. Ranks that
    are sent a panel make its T themselves, and look at the range of all that they update."""
    total = 0
    for done in range(0, n, block):
        rows, right = n - done, max(0, n - done - block)
        update, ahead = 4 * rows * block * right / (ranks * RATE), panel(rows, block)
        if ranks > 1:
            t = 2 * rows * block**2 / RATE
            update += rows * right * SIZE / (ranks * READ) + (t if right else 0)
            ahead += 3 * t + broadcast(ranks, rows * block * SIZE)
        total += max(update, ahead)
    return total


def batch(ranks, alone):
    """A batch that takes so long on one GPU: nothing is sent; the last members of each rank leave it half idle."""
    return alone / ranks + 60e-6 * (ranks > 1)


CASES = [
    ("R of 16M × 64", lambda p: tsqr(p, 16 << 20, 64)),
    ("R of 1024M × 64", lambda p: tsqr(p, 1 << 30, 64)),
    ("R of 64M × 512", lambda p: tsqr(p, 64 << 20, 512)),
    ("65536 × 65536", lambda p: square(p, 65536)),
    ("524288 × 524288", lambda p: square(p, 524288)),
    ("100 000 of 512 × 512", lambda p: batch(p, 0.59)),
]
RANKS = [1, 2, 8, 64, 1024]


def number(seconds):
    return f"{1e3 * seconds:.3g}" if seconds < 1 else f"{1e3 * seconds:.0f}"


def table():
    lines = ["| ms (times faster than one) | " + " | ".join(str(p) for p in RANKS) + " |",
             "| --- |" + " --- |" * len(RANKS)]
    for name, time in CASES:
        alone = time(1)
        cells = [number(alone)] + [f"{number(time(p))} ({alone / time(p):.3g})" for p in RANKS[1:]]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


COLOURS = ["#d55e00", "#e69f00", "#cc79a7", "#0072b2", "#56b4e9", "#009e73"]


def picture():
    """Speedup over the number of GPUs, both as powers of two."""
    width, height, left, top, right, bottom = 640, 360, 60, 30, 470, 310
    x = lambda p: left + (right - left) * math.log2(p) / 10
    y = lambda s: bottom - (bottom - top) * math.log2(max(1, s)) / 10
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
           f'<rect width="{width}" height="{height}" fill="white"/>']

    def text(at_x, at_y, words, anchor="start", colour="#1f2933"):
        out.append(f'<text x="{at_x:.1f}" y="{at_y:.1f}" font-size="12" text-anchor="{anchor}" fill="{colour}">{words}</text>')

    text(left, 18, "Times faster than one GPU (model)")
    for p in (1, 8, 64, 1024):
        out.append(f'<line x1="{left}" x2="{right}" y1="{y(p):.1f}" y2="{y(p):.1f}" stroke="#e4e7eb"/>')
        text(left - 6, y(p) + 4, p, "end")
        text(x(p), bottom + 18, p, "middle")
    text((left + right) / 2, bottom + 38, "GPUs", "middle")
    out.append(f'<line x1="{x(1)}" y1="{y(1)}" x2="{x(1024)}" y2="{y(1024)}" stroke="#7b8794" stroke-dasharray="4 4"/>')
    ends = sorted((y(time(1) / time(1024)), i) for i, (_, time) in enumerate(CASES))
    at = top - 20
    for end, i in ends:
        name, time = CASES[i]
        points = " ".join(f"{x(2**k):.1f},{y(time(1) / time(2**k)):.1f}" for k in range(11))
        out.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[i]}" stroke-width="2"/>')
        at = max(at + 15, end + 4)
        text(right + 8, at, name, colour=COLOURS[i])
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    if sys.argv[1:2] == ["--check"]:
        with open(sys.argv[2], encoding="utf-8") as page:
            return 0 if table() in page.read() else f"{sys.argv[2]} has another table"
    if sys.argv[1:2] == ["--svg"]:
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            file.write(picture())
    print(table(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
