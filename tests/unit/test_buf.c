/* SPDX-License-Identifier: MIT */
#include "base/basics.h"

#include "tap.h"

static void
test_append(void)
{
	auto_buf struct buf b = BUF_INIT(1000);

	is_str(buf_str(&b), "", "an empty buffer reads as an empty string");
	buf_adds(&b, "ab");
	buf_addc(&b, 'c');
	buf_addf(&b, "-%d-%s", 42, "x");
	buf_add(&b, "\0z", 2);
	is_mem(b.data, b.len, "abc-42-x\0z", (size_t)10, "appends add up");
	is_int(b.data[b.len], 0, "a NUL follows");
	buf_add(&b, NULL, 0);
	is_int(b.len, 10, "appending nothing");
	buf_cut(&b, 3);
	is_str(buf_str(&b), "abc", "buf_cut");
	buf_cut(&b, 99);
	is_int(b.len, 3, "buf_cut never lengthens");
}

static void
test_bound(void)
{
	auto_buf struct buf b = BUF_INIT(5);

	buf_adds(&b, "12345");
	ok(!b.overflow, "max bytes fit");
	ok(b.cap == 6, "and no more is allocated than can be used");
	buf_addc(&b, '6');
	ok(b.overflow, "one more overflows");
	is_str(buf_str(&b), "12345", "and appends nothing");
	buf_cut(&b, 0);
	buf_addc(&b, 'x');
	is_int(b.len, 0, "an overflowed buffer takes no more, also when cut");
	buf_reset(&b);
	buf_addf(&b, "%s", "54321");
	ok(!b.overflow, "buf_reset forgets the overflow");
	is_str(buf_str(&b), "54321", "and the room is there again");
	buf_reset(&b);
	buf_addf(&b, "%s", "654321");
	ok(b.overflow && b.len == 0, "buf_addf is whole or not at all");
	ok(buf_reserve(&b, 1) == NULL, "buf_reserve after an overflow");
}

static void
test_growth(void)
{
	auto_buf struct buf b = BUF_INIT(100000);
	auto_buf struct buf huge = BUF_INIT(SIZE_MAX);
	bool same = true;

	for (int i = 0; i < 100000; i++)
		buf_addc(&b, (char)('a' + i % 26));
	is_int(b.len, 100000, "grows up to max");
	ok(b.cap <= b.max + 1, "and never allocates more");
	for (int i = 0; i < 100000; i++)
		same = same && b.data[i] == (char)('a' + i % 26);
	ok(same, "the contents survive growing");
	buf_addc(&huge, 'x');
	ok(buf_reserve(&huge, SIZE_MAX) == NULL, "sizes do not wrap round");
}

static void
test_reserve_steal(void)
{
	auto_buf struct buf b = BUF_INIT(64);
	auto_free char *taken = NULL;
	auto_free char *empty = NULL;
	size_t len = 99;
	char *room = buf_reserve(&b, 10);

	memcpy(room, "hello", 5);
	buf_commit(&b, 5);
	is_str(buf_str(&b), "hello", "reserve and commit");
	buf_drop(&b, 0);
	buf_drop(&b, 2);
	is_str(buf_str(&b), "llo", "the first are dropped");
	buf_drop(&b, 3);
	is_str(buf_str(&b), "", "and all of them");
	buf_adds(&b, "hello");
	taken = buf_steal(&b, &len);
	is_str(taken, "hello", "buf_steal hands the memory over");
	is_int(len, 5, "with its length");
	is_int(b.max, 64, "the emptied buffer keeps max");
	empty = buf_steal(&b, &len);
	is_str(empty, "", "stealing from an empty buffer");
	is_int(len, 0, "has length 0");
	buf_adds(&b, "again");
	is_str(buf_str(&b), "again", "a stolen-from buffer is usable");
	buf_release(&b);
	buf_release(&b);
	buf_release(NULL);
	is_str(buf_str(&b), "", "releasing twice is harmless");
}

static void
test_strings(void)
{
	auto_free char *a = xstrdup("abc");
	auto_free char *b = xstrndup("abcdef", 2);
	auto_free char *c = xstrndup("a", 9);
	auto_free char *z = xcalloc(3, 2);

	is_str(a, "abc", "xstrdup");
	is_str(b, "ab", "xstrndup cuts");
	is_str(c, "a", "xstrndup stops at the NUL");
	is_mem(z, (size_t)6, "\0\0\0\0\0\0", (size_t)6, "xcalloc");
}

int
main(void)
{
	test_append();
	test_bound();
	test_growth();
	test_reserve_steal();
	test_strings();
	return tap_done();
}
