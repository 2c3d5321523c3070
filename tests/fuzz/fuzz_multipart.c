/* SPDX-License-Identifier: MIT */
/* Any bytes as a form: in one piece and byte by byte the same comes out, and it
 * keeps the promises of multipart.h. */
#include "fuzz.h"

#include <string.h>

#include "base/utf8.h"
#include "contract/multipart.h"

struct seen {
	struct buf events;
	size_t parts;
};

static void
take_part(struct seen *seen, const struct multipart *m)
{
	fuzz_holds(utf8_valid(buf_str(&m->name), m->name.len),
	    "a name is text");
	seen->parts++;
	buf_addf(&seen->events, "\nbegin %s", buf_str(&m->name));
	if (m->is_file) {
		fuzz_holds(utf8_valid(buf_str(&m->filename), m->filename.len),
		    "a file's name is text");
		buf_addf(&seen->events, " %s", buf_str(&m->filename));
	}
	buf_addc(&seen->events, '\n');
}

static void
take_slice(struct seen *seen, const struct multipart *m)
{
	fuzz_holds(seen->parts > 0 && m->data_len > 0, "data of a part");
	buf_add(&seen->events, m->data, m->data_len);
}

static void
run(struct seen *seen, const char *body, size_t len, size_t piece)
{
	enum multipart_event event = MULTIPART_MORE;
	struct multipart m;
	const char *error;

	memset(seen, 0, sizeof(*seen));
	buf_init(&seen->events, (size_t)1 << 24);
	fuzz_holds(multipart_open(&m, "multipart/form-data; boundary=x"),
	    "opens");
	for (size_t at = 0; at < len && event != MULTIPART_FAILED;
	     at += piece) {
		multipart_add(&m, body + at,
		    len - at < piece ? len - at : piece);
		while ((event = multipart_next(&m)) == MULTIPART_PART ||
		    event == MULTIPART_SLICE)
			if (event == MULTIPART_PART)
				take_part(seen, &m);
			else
				take_slice(seen, &m);
	}
	error = multipart_end(&m);
	fuzz_holds(event != MULTIPART_FAILED || error != NULL, "says why");
	buf_adds(&seen->events, error == NULL ? "whole" : error);
	multipart_release(&m);
}

static void
check_header(const char *s, size_t len)
{
	auto_buf struct buf value = BUF_INIT(len);
	auto_buf struct buf name = BUF_INIT(2 * len);
	auto_buf struct buf header = BUF_INIT(16 * len + 64);

	(void)disposition_get(&value, s, len, "name");
	if (!disposition_get_filename(&name, s, len, false))
		return;
	fuzz_holds(utf8_valid(buf_str(&name), name.len), "is text");
	disposition_add(&header, buf_str(&name));
	for (size_t i = 0; i < header.len; i++)
		fuzz_holds(header.data[i] >= 0x20 && header.data[i] < 0x7f,
		    "a header is printable");
	fuzz_holds(!header.overflow, "and not too long");
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const char *body = (const char *)bytes;
	struct seen whole;
	struct seen pieces;

	run(&whole, body, size, MULTIPART_PIECE);
	run(&pieces, body, size, 1);
	fuzz_holds(whole.parts == pieces.parts &&
		whole.events.len == pieces.events.len &&
		memcmp(buf_str(&whole.events), buf_str(&pieces.events),
		    whole.events.len) == 0,
	    "pieces make no difference");
	buf_release(&whole.events);
	buf_release(&pieces.events);
	check_header(body, size);
	return 0;
}
