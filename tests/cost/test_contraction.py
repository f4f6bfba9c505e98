"""Register tiles: how many rows, columns and outer rows are held at once."""

from __future__ import annotations

from dataclasses import replace

from weft.cost import Tile, TileProblem, cheapest, tile_cycles, tile_plans
from weft.cost.rules.contractions.contraction import OPEN_ROWS
from weft.targets import Target, cpu

WIDE = cpu("avx512").having(
    fma_per_cycle=2, l1=48 << 10, l2=1 << 20, l2_speed=48.0, l3=32 << 20, l3_speed=24.0, memory_speed=8.0
)
SMALL_PLANE = TileProblem(row=4, column=16, last=16, depth=2048, element_bytes=4, outer_row=4, right_bytes=64 << 10)


def choose_tile(problem: TileProblem, target: Target) -> Tile:
    tile = cheapest(list(tile_plans(problem, target))).decision
    assert isinstance(tile, Tile)
    return tile


def test_a_small_plane_takes_several_rows_where_weights_come_from_afar() -> None:
    assert choose_tile(replace(SMALL_PLANE, depth=64), WIDE) == Tile(4, 4, 16)
    afar = choose_tile(replace(SMALL_PLANE, right_bytes=8 << 20), WIDE)
    assert (afar.rows, afar.outer_rows) == (4, 2)
    assert afar.columns < 4


def test_a_tile_with_its_operands_fits_the_registers() -> None:
    for target in (WIDE, cpu("avx2"), cpu("sse4")):
        for row in (1, 3, 7, 28):
            p = replace(SMALL_PLANE, row=row, outer_row=row, right_bytes=64 << 20)
            t = choose_tile(p, target)
            vectors = t.columns * -(-t.width // target.lanes(32))
            assert (t.rows * t.outer_rows + 1) * vectors + 1 <= target.isa.vector_registers
            assert t.outer_rows == 1 or t.rows == row


def test_columns_need_not_divide_the_panels() -> None:
    """Of five panels two at a time halve the loads of each row; of an unknown number only what divides many of them does."""
    five = TileProblem(row=40, column=5, last=16, depth=1536, element_bytes=4, outer_row=40, right_bytes=1 << 20)
    assert choose_tile(five, WIDE).columns > 1
    assert choose_tile(replace(five, column=7), WIDE).columns > 1
    assert choose_tile(replace(five, open_column=True), WIDE).columns == 1


def test_what_is_used_once_is_read_in_long_pieces() -> None:
    """A vector times a matrix from memory reads most of a row at once; so does a batch of such products, one matrix at a time."""
    one = TileProblem(row=1, column=1, last=4096, depth=4096, element_bytes=4, right_bytes=64 << 20)
    assert choose_tile(one, WIDE) == Tile(1, 1, 256)
    batch = replace(one, row=16, last=128, depth=2048, right_bytes=16 << 20, shared=True)
    assert choose_tile(batch, WIDE).width == 128
    assert choose_tile(batch, WIDE).rows <= 2


def test_sums_of_rows_read_long_pieces() -> None:
    """Where nothing is multiplied each element is read once, whatever the tile: that of a whole row reads one after another."""
    assert choose_tile(TileProblem(row=26, column=1, last=224, depth=172, element_bytes=4), WIDE) == Tile(1, 1, 224)


def test_sums_of_rows_near_by_read_whole_rows() -> None:
    """A piece of a row loses a line of the second-level cache; where none holds all of a row, the widest loses the fewest."""
    narrow = cpu("avx2").having(l1=32 << 10, l2=1 << 20, l2_speed=28.0, l3=32 << 20, l3_speed=27.0)
    assert choose_tile(TileProblem(row=10, column=1, last=48, depth=259, element_bytes=4), narrow).width == 48
    assert choose_tile(TileProblem(row=73, column=1, last=118, depth=91, element_bytes=4), narrow).width >= 88


def test_few_rows_read_long_pieces_of_a_matrix_with_long_rows() -> None:
    """What is not in panels is read anew from memory for each piece of its rows."""
    plane = TileProblem(row=18, column=1, last=961, depth=281, element_bytes=4, right_bytes=4 << 20)
    assert choose_tile(plane, WIDE).width >= 48
    assert choose_tile(replace(plane, right_bytes=1 << 18, windows=True), WIDE).width < 48


def test_weights_that_were_not_read_for_long_are_read_by_one_tile() -> None:
    """Another tile would find in cache what the first waited for; an image of the same size was just computed."""
    few = TileProblem(row=9, column=2, last=32, depth=128, element_bytes=4, right_bytes=1 << 19)
    far = WIDE.having(l3_speed=10.0)
    assert choose_tile(few, far) == Tile(9, 1, 32)
    assert choose_tile(replace(few, windows=True), far) == Tile(5, 2, 32)


def test_long_axes_are_not_gone_through() -> None:
    """More than there are registers is never held at once: the tile of many rows is that of fewer, where both leave no rest."""
    some, many = 27720, 27720 * 10**12
    assert choose_tile(replace(SMALL_PLANE, row=many), WIDE) == choose_tile(replace(SMALL_PLANE, row=some), WIDE)
    outer = [choose_tile(replace(SMALL_PLANE, row=1, outer_row=n, right_bytes=8 << 20), WIDE) for n in (some, many)]
    assert outer[0] == outer[1]
    assert outer[0].outer_rows > 1


def test_rows_of_unknown_number_are_taken_a_few_at_a_time() -> None:
    """The last tile is written out for each number of rows."""
    many = replace(SMALL_PLANE, row=64, column=1, outer_row=1)
    assert choose_tile(many, WIDE).rows > OPEN_ROWS
    assert 1 < choose_tile(replace(many, open_row=True), WIDE).rows <= OPEN_ROWS


def test_tiles_of_rows_of_unknown_length_are_narrow() -> None:
    """A last tile of a few vectors still has sums enough of its rows to hide their latency."""
    problem = TileProblem(row=64, column=1, last=64, depth=64, element_bytes=4, open_last=True, right_bytes=1 << 14)
    assert choose_tile(problem, cpu("avx2").having(loads_per_cycle=2.0)) == Tile(6, 1, 16)


def test_the_mask_of_a_last_vector_takes_a_register() -> None:
    """Three vectors of which the last has three elements leave room for three rows; of four elements it is a short vector."""
    row = TileProblem(row=120, column=1, last=19, depth=30, element_bytes=4, right_bytes=1 << 17, windows=True)
    assert choose_tile(row, cpu("avx2")).rows == 3
    assert choose_tile(replace(row, last=20), cpu("avx2")).rows == 4


def test_what_each_row_of_tiles_reads_again_is_read_for_many_rows() -> None:
    """By rows, a matrix beyond the first level comes from the second for each of them."""
    plain = TileProblem(row=64, column=1, last=1024, depth=4, element_bytes=4, right_bytes=1 << 18)
    costs = [tile_cycles(replace(plain, between=n), Tile(2, 1, 16), WIDE) for n in (0, 1 << 14, 1 << 18)]
    assert costs[0] == costs[1] < costs[2]


def test_vectors_that_begin_anywhere_are_loaded_twice() -> None:
    far = TileProblem(row=64, column=1, last=1024, depth=8, element_bytes=4, right_bytes=1 << 15, right_stride=4160)
    aligned, anywhere = (tile_cycles(replace(far, right_stride=n), Tile(2, 1, 64), WIDE) for n in (4160, 4164))
    assert aligned < anywhere
