/* SPDX-License-Identifier: MIT */
#include "copy_head.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "../base/buf.h"
#include "../base/text.h"

void
copy_head_name(const char *id, char name[STORE_NAME_MAX])
{
	(void)snprintf(name, STORE_NAME_MAX, STORE_FILES "/%s/head", id);
}

void
copy_part_name(const char *id, size_t part, char name[STORE_NAME_MAX])
{
	if (part == COPY_DRAFT)
		(void)snprintf(name, STORE_NAME_MAX, STORE_FILES "/%s/draft",
		    id);
	else
		(void)snprintf(name, STORE_NAME_MAX, STORE_FILES "/%s/%02zu",
		    id, part);
}

size_t
copy_parts(int64_t size)
{
	return ((size_t)size + COPY_PART - 1) / COPY_PART;
}

size_t
copy_part_len(int64_t size, size_t part)
{
	size_t rest = (size_t)size - part * COPY_PART;

	return rest < COPY_PART ? rest : COPY_PART;
}

void
copy_hash(unsigned char hash[COPY_HASH], const void *data, size_t len)
{
	(void)crypto_hash_sha256(hash, data, len);
}

void
copy_head_make(struct buf *out, const struct copy_head *head)
{
	unsigned char hash[COPY_HASH];

	buf_addf(out, "inline-file 1 %s %" PRId64 " %" PRId64 " %zu\n",
	    head->id, head->size, head->used_ms, head->note_len);
	buf_add(out, head->hashes, copy_parts(head->size) * COPY_HASH);
	buf_add(out, head->note, head->note_len);
	copy_hash(hash, buf_str(out), out->len);
	buf_add(out, hash, sizeof(hash));
}

/* The numbers of the first line; what they are of is compared below. */
static bool
parse_line(struct copy_head *head, char *line)
{
	const char *words[6] = { NULL };
	int64_t note_len;

	for (size_t i = 0; i < 6; i++) {
		words[i] = strsep(&line, " ");
		if (words[i] == NULL)
			return false;
	}
	if (!text_parse_int(words[3], 0, SNAPSHOT_FILE_MAX, &head->size) ||
	    !text_parse_int(words[4], 0, INT64_MAX / 2, &head->used_ms) ||
	    !text_parse_int(words[5], 0, SNAPSHOT_NOTE_MAX, &note_len))
		return false;
	head->note_len = (size_t)note_len;
	return true;
}

/* It is what would be made of it, byte for byte. */
bool
copy_head_parse(struct copy_head *head, const void *data, size_t len,
    const char *id)
{
	auto_buf struct buf again = BUF_INIT(COPY_HEAD_MAX);
	const unsigned char *at = data;
	const unsigned char *end = memchr(at, '\n',
	    len < COPY_LINE ? len : COPY_LINE - 1);
	char line[COPY_LINE] = "";
	size_t hashes;

	if (end == NULL)
		return false;
	memcpy(line, at, (size_t)(end - at));
	*head = (struct copy_head){ .size = 0 };
	memcpy(head->id, id, SNAPSHOT_FILE_LEN);
	if (!parse_line(head, line))
		return false;
	hashes = copy_parts(head->size) * COPY_HASH;
	at = end + 1;
	if (len - (size_t)(at - (const unsigned char *)data) !=
	    hashes + head->note_len + COPY_HASH)
		return false;
	memcpy(head->hashes, at, hashes);
	memcpy(head->note, at + hashes, head->note_len);
	copy_head_make(&again, head);
	return again.len == len && memcmp(again.data, data, len) == 0;
}
