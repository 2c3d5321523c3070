/* SPDX-License-Identifier: MIT */
/* What a bucket has kept: the head of a file's copy, and a page of a list.  No
 * fuzzer finds the hash at the end of a head, so that it is put there. */
#include "fuzz.h"

#if __has_include(<zstd.h>) /* il-snapshot is built where that is */

#include "sandbox/base/buf.h"
#include "sandbox/snapshot/copy_head.h"
#include "sandbox/snapshot/s3_answer.h"

#define ID "01234567-89ab-4cde-8f01-23456789abcd"

static void
check_head(const void *data, size_t len)
{
	auto_buf struct buf again = BUF_INIT(COPY_HEAD_MAX);
	static struct copy_head head;

	if (!copy_head_parse(&head, data, len, ID))
		return;
	fuzz_holds(strcmp(head.id, ID) == 0, "of that file");
	fuzz_holds(head.size >= 0 && head.size <= SNAPSHOT_FILE_MAX &&
		copy_parts(head.size) <= COPY_PARTS &&
		head.note_len <= SNAPSHOT_NOTE_MAX && head.used_ms >= 0,
	    "within what there can be");
	copy_head_make(&again, &head);
	fuzz_holds(again.len == len && memcmp(again.data, data, len) == 0,
	    "what is read is written");
}

static void
on_name(void *arg, const char *name, int64_t seconds)
{
	fuzz_holds(store_is_name(name, arg) && strstr(name, "..") == NULL,
	    "a name of ours");
	fuzz_holds(seconds >= 0, "a time, or none");
}

static void
check_page(const char *text)
{
	static char files[] = STORE_FILES;
	static char sandbox[] = "0123456789abcdef0123456789abcdef";
	char next[S3_TOKEN_MAX];

	if (s3_page(text, "p/", files, on_name, files, next))
		fuzz_holds(strlen(next) < S3_TOKEN_MAX, "a token");
	(void)s3_page(text, "", sandbox, on_name, sandbox, next);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf finished = BUF_INIT(size + COPY_HASH);
	unsigned char hash[COPY_HASH];
	char *text = fuzz_text(data, size);

	check_head(text, size);
	buf_add(&finished, data, size);
	copy_hash(hash, buf_str(&finished), size);
	buf_add(&finished, hash, sizeof(hash));
	check_head(finished.data, finished.len);
	check_page(text);
	free(text);
	return 0;
}

#else

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)data;
	(void)size;
	return 0;
}

#endif
