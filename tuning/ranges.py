# SPDX-License-Identifier: BSD-3-Clause
"""From measured cells to few lines of ranges, of which the first that fits decides.

A cell is a type, a class of counts, m and n; it stands for all sizes down to the grid's next smaller point. A line
is a box of neighbouring cells and a choice that is nearly the best in each cell that no earlier line decides.
"""
import math
from collections import namedtuple
from itertools import permutations, product

TYPES = "sdcz"
# A few members; fewer than multiprocessors; as many as these hold at once; some thousand; enough to fill the memory
# system.
CLASSES = (1, 4, 32, 256, 2001)
ENDS = ("3", "31", "255", "2000", "")
RESOLUTION_MS = 2.5e-4  # half of what CUDA's events resolve: shorter differences are none
SEEDS = 100  # cells tried at most for each line and choice

# times: of verified choices. supported: also those that were too slow or wrong. heuristic: time without a table.
Cell = namedtuple("Cell", "case times supported wrong heuristic")
# box: first and last index on each axis. mask: its cells.
Line = namedtuple("Line", "box choice mask gain")


def geomean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


def class_of(batch):
    return sum(batch >= start for start in CLASSES) - 1


def filled(cells, axes):
    """Classes that were not measured are like the nearest one, sizes between measured ones like the upper."""
    cells = dict(cells)
    for k in (1, 2, 3):
        for others in product(*axes[:k], *axes[k + 1:]):
            key = lambda x: others[:k] + (x,) + others[k:]
            known = [x for x in axes[k] if key(x) in cells]
            for x in axes[k] if known else ():
                if k == 1:
                    cells[key(x)] = cells[key(min(known, key=lambda y: abs(x - y)))]
                elif known[0] < x < known[-1]:
                    cells[key(x)] = cells[key(min(y for y in known if y >= x))]
    return cells


class Cover:
    """Sets of cells are the bits of integers, cell i is bit i."""

    def __init__(self, measured, tolerance):
        self.axes = [[t for t in TYPES if any(key[0] == t for key in measured)], list(range(len(CLASSES))),
                     sorted({key[2] for key in measured}), sorted({key[3] for key in measured})]
        self.keys = list(product(*self.axes))
        self.place = [tuple(axis.index(x) for axis, x in zip(self.axes, key)) for key in self.keys]
        self.range_mask = [{(a, b): self.where(lambda i: a <= self.place[i][k] <= b)
                            for a in range(len(axis)) for b in range(a, len(axis))}
                           for k, axis in enumerate(self.axes)]
        cells = filled(measured, self.axes)
        self.cells = [cells.get(key) for key in self.keys]
        self.choices = sorted({choice for cell in cells.values() for choice in cell.times})
        self.good = {x: self.where(lambda i: self.loss(i, x) <= tolerance) for x in self.choices}
        self.supported = {x: self.where(lambda i: self.cells[i] and x in self.cells[i].supported) for x in self.choices}
        self.open = self.where(lambda i: self.cells[i] and self.cells[i].times)
        self.hopeless = self.where(lambda i: self.cells[i] and not self.cells[i].times)
        self.lines = []
        while self.open:
            self.lines.append(self.next_line())

    def where(self, condition):
        return sum(1 << i for i in range(len(self.keys)) if condition(i))

    @staticmethod
    def members(mask):
        while mask:
            yield (mask & -mask).bit_length() - 1
            mask &= mask - 1

    def loss(self, i, choice):
        cell = self.cells[i]
        if not cell or choice not in cell.times:
            return math.inf
        return max(1.0, (cell.times[choice] - RESOLUTION_MS) / min(cell.times.values()))

    def mask(self, box):
        a, b, c, d = (self.range_mask[k][ends] for k, ends in enumerate(box))
        return a & b & c & d

    def legal(self, box, choice, bad):
        """No cell is lost, and the choice supports the largest sizes, hence all."""
        corner = self.mask(box[:2] + ((box[2][1],) * 2, (box[3][1],) * 2))
        return not self.mask(box) & bad and not corner & ~self.supported[choice]

    def grow(self, seed, choice, order, bad):
        """A box around a cell that no step in any direction can enlarge."""
        box, before = tuple((x, x) for x in self.place[seed]), None
        while box != before:
            before = box
            for k, down, up in ((k, *step) for k in order for step in ((1, 0), (0, 1))):
                while True:
                    ends = box[k][0] - down, box[k][1] + up
                    larger = box[:k] + (ends,) + box[k + 1:]
                    if ends not in self.range_mask[k] or not self.legal(larger, choice, bad):
                        break
                    box = larger
        return box

    def next_line(self):
        """The box that decides most cells; of equal ones that with the least loss."""
        seeds = list(self.members(self.open))
        best = None
        for choice in self.choices:
            bad, seen = (self.open | self.hopeless) & ~self.good[choice], 0
            for seed in seeds[::len(seeds) // SEEDS + 1]:
                if not self.good[choice] & ~seen & 1 << seed:
                    continue
                for order in list(permutations(range(4)))[::5]:
                    box = self.grow(seed, choice, order, bad)
                    new = self.mask(box) & self.open
                    seen |= new
                    rank = -new.bit_count(), sum(self.loss(i, choice) for i in self.members(new)), choice, box
                    best = min(best or rank, rank)
        choice, box = best[2:]
        new = list(self.members(self.mask(box) & self.open))
        # No larger than what it decides, but where no measurement says that the choice supports the largest sizes.
        tight = tuple((min(x), max(x)) for x in zip(*(self.place[i] for i in new)))
        if not self.legal(tight, choice, 0):
            tight = tuple((low, high) for (low, _), (_, high) in zip(tight, box))
        box = tight
        self.open &= ~self.mask(box)
        gain = geomean(self.cells[i].heuristic / self.cells[i].times[choice] for i in new)
        return Line(box, choice, self.mask(box), gain)

    def decisions(self):
        """The choice for each cell, by its key."""
        return {key: line.choice for line in reversed(self.lines) for i, key in enumerate(self.keys)
                if line.mask >> i & 1}

    def words(self, op, line):
        """The fields of a line of a table."""
        types, counts, *sizes = line.box
        text = [op, "".join(self.axes[0][types[0]:types[1] + 1])]
        for axis, (low, high) in zip(self.axes[2:], sizes):
            first, last = axis[low - 1] + 1 if low else 1, axis[high]
            text.append(f"{first}..{last}" if first < last else f"{last}")
        return text + [f"{CLASSES[counts[0]]}..{ENDS[counts[1]]}", *line.choice, f"{max(line.gain, 0.01):.2f}"]
