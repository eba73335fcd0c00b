# SPDX-License-Identifier: BSD-3-Clause
"""From measurements to few lines of ranges, of which the first that fits decides.

The measurements' boxes cut types, m, n and counts into cells. The finest measurement that stands for a cell decides
there; of equally fine ones the newest. A line is a box of cells and a choice. It takes in cells where the choice is
nearly the best, and what lines before it decide, but never a cell where nothing was measured or the choice is slower.
"""
import math
from bisect import bisect_left
from functools import lru_cache
from itertools import permutations

from measurements import CLASSES, NO_END, text_of

TYPES = "sdcz"
LEAST_GAIN = 1.05  # less is within what two runs differ by: no line
RESOLUTION_MS = 2.5e-4  # half of what CUDA's events resolve: shorter differences are none
SEEDS = 6  # cells that boxes of a choice are grown from, for each line
ONE_LAYOUT = ("geqrf_large",)  # does not take arrays of addresses: other lines follow for these


def geomean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


def fineness(one):
    """Fewer sizes first, then fewer counts, then the newer."""
    sizes = math.prod(last - first + 1 for first, last in one.box[:2])
    first, last = one.box[2]
    return sizes, min(last, 10 * CLASSES[-1]) / first, [-ord(c) for c in one.date], one.case, one.box


def nearly_best(one, choices, tolerance):
    """Those that take at most `tolerance` as long as the best, which may be what is taken without a table."""
    best = max(choices, key=lambda choice: (one.gains[choice], choice), default=None)
    if best is None:
        return set()
    least = LEAST_GAIN if one.gains[best] >= LEAST_GAIN else 1 / tolerance
    near = set()
    for choice in choices:
        loss = one.gains[best] / max(one.gains[choice], 1e-9)
        if choice in one.ms and best in one.ms:
            loss = min(loss, (one.ms[choice] - RESOLUTION_MS) / one.ms[best])
        if loss <= tolerance and one.gains[choice] >= least:
            near.add(choice)
    return near


class Cells:
    """Sets of cells are the bits of integers; a box is a pair of indices, first and last, on each axis."""

    def __init__(self, found):
        self.starts = [sorted({1} | {end for one in found for end in (one.box[k][0], one.box[k][1] + 1)})
                       for k in range(3)]
        self.lengths = [len(TYPES)] + [len(starts) for starts in self.starts]
        self.total = math.prod(self.lengths)
        self.range_mask = lru_cache(maxsize=None)(self.range_mask)

    def range_mask(self, axis, first, last):
        stride = math.prod(self.lengths[axis + 1:])
        period = stride * self.lengths[axis]
        block = (1 << stride * (last - first + 1)) - 1 << stride * first
        return block * (((1 << self.total) - 1) // ((1 << period) - 1))

    def mask(self, box):
        a, b, c, d = (self.range_mask(axis, *ends) for axis, ends in enumerate(box))
        return c & d & b & a

    def box_of(self, one):
        letter = TYPES.index(one.case.type)
        return ((letter, letter), *((bisect_left(starts, first), bisect_left(starts, last + 1) - 1)
                                    for starts, (first, last) in zip(self.starts, one.box)))

    def at(self, bit):
        """The box of one cell."""
        place = []
        for length in reversed(self.lengths):
            bit, k = divmod(bit, length)
            place.append((k, k))
        return tuple(reversed(place))

    def bounds(self, mask):
        """The smallest box around the cells."""
        return tuple((hits[0], hits[-1]) for hits in (
            [k for k in range(length) if mask & self.range_mask(axis, k, k)]
            for axis, length in enumerate(self.lengths)))

    def words(self, box):
        types, *sizes = box
        return [TYPES[types[0]:types[1] + 1]] + [
            text_of(starts[low], (starts + [NO_END + 1])[high + 1] - 1) for starts, (low, high) in zip(self.starts, sizes)]


class Cover:
    """The lines for one operation."""

    def __init__(self, found, tolerance):
        self.cells = Cells(found)
        self.seen, taken = [], 0  # (measurement, the cells where it decides)
        for one in sorted(found, key=fineness):
            mask = self.cells.mask(self.cells.box_of(one))
            if mask & ~taken:
                self.seen.append((one, mask & ~taken))
            taken |= mask
        self.lines = []
        first = self.cover(lambda one, choice: choice[0] in ONE_LAYOUT, 0, tolerance)
        self.cover(lambda one, choice: choice[0] not in ONE_LAYOUT, first, tolerance)

    def cover(self, takes, first, tolerance):
        """Appends lines of the choices that it takes. Cells of `first` are decided by one of another kind."""
        good, todo = {}, 0
        for one, mask in self.seen:
            right = [choice for choice in one.gains if one.gains[choice] > 0]
            near = nearly_best(one, right, tolerance)
            if not near or mask & first:
                near = nearly_best(one, [choice for choice in right if takes(one, choice)], tolerance)
            near = {choice for choice in near if takes(one, choice)}
            for choice in near:
                good[choice] = good.get(choice, 0) | mask
            if near and max(one.gains[choice] for choice in near) >= LEAST_GAIN:
                todo |= mask
        decided, best = 0, {}
        all_todo = todo
        while todo:
            for choice in good:
                if choice in best and not best[choice][1] & ~todo:
                    continue
                best[choice] = self.largest(choice, good[choice], todo, decided)
            choice = min(best, key=lambda x: (-best[x][1].bit_count(), x))
            new = best[choice][1]
            box = self.cells.bounds(new)
            gain = geomean(one.gains[choice] for one, mask in self.seen if mask & new)
            self.lines.append((choice, box, gain))
            decided |= self.cells.mask(box)
            todo &= ~new
        return all_todo

    def largest(self, choice, good, todo, decided):
        """Of boxes grown from some cells that which takes in most that is to be done: (box, those cells)."""
        allowed, wanted, found = good | decided, good & todo, (None, 0)
        for _ in range(SEEDS):
            if not wanted:
                break
            seed = (wanted & -wanted).bit_length() - 1
            for order in list(permutations(range(4)))[::5]:
                box = self.grow(self.cells.at(seed), allowed, order)
                new = self.cells.mask(box) & good & todo
                wanted &= ~new
                if new.bit_count() > found[1].bit_count():
                    found = box, new
        return found

    def grow(self, box, allowed, order):
        """The box, until no step in any direction can enlarge it."""
        before = None
        while box != before:
            before = box
            for axis, down, up in ((axis, *step) for axis in order for step in ((1, 0), (0, 1))):
                while True:
                    low, high = box[axis][0] - down, box[axis][1] + up
                    if low < 0 or high >= self.cells.lengths[axis]:
                        break
                    larger = box[:axis] + ((low, high),) + box[axis + 1:]
                    if self.cells.mask(larger) & ~allowed:
                        break
                    box = larger
        return box

    def texts(self, op):
        """The fields of the table's lines."""
        return [[op, *self.cells.words(box), *choice, f"{gain:.2f}"] for choice, box, gain in self.lines]
