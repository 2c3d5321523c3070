/* Any bytes as a form: in one piece and byte by byte the same comes out, and it
 * keeps the promises of multipart.h. */
#include "fuzz.h"

#include <string.h>

#include "fcgi/contract/disposition.h"
#include "fcgi/contract/multipart.h"
#include "sandbox/base/utf8.h"

struct seen {
	struct buf events;
	bool inside;
	size_t parts;
};

static bool
begin(void *arg, const struct multipart_part *part)
{
	struct seen *seen = arg;

	fuzz_holds(!seen->inside, "parts follow each other");
	fuzz_holds(utf8_valid(part->name, strlen(part->name)),
	    "a name is text");
	seen->inside = true;
	seen->parts++;
	buf_addf(&seen->events, "begin %s", part->name);
	if (part->filename != NULL) {
		fuzz_holds(utf8_valid(part->filename, strlen(part->filename)),
		    "a file's name is text");
		buf_addf(&seen->events, " %s", part->filename);
	}
	buf_addc(&seen->events, '\n');
	return true;
}

static bool
data(void *arg, const void *bytes, size_t len)
{
	struct seen *seen = arg;

	fuzz_holds(seen->inside && len > 0, "data of a part");
	buf_add(&seen->events, bytes, len);
	return true;
}

static bool
end(void *arg)
{
	struct seen *seen = arg;

	fuzz_holds(seen->inside, "what ends has begun");
	seen->inside = false;
	buf_adds(&seen->events, "\nend\n");
	return true;
}

static const struct multipart_calls calls = { begin, data, end };

static void
run(struct seen *seen, const char *body, size_t len, size_t piece)
{
	struct multipart m;

	memset(seen, 0, sizeof(*seen));
	buf_init(&seen->events, (size_t)1 << 24);
	fuzz_holds(multipart_open(&m, "multipart/form-data; boundary=x", &calls,
		       seen) == MULTIPART_FINE,
	    "opens");
	for (size_t at = 0; at < len; at += piece)
		if (!multipart_add(&m, body + at,
			len - at < piece ? len - at : piece))
			break;
	if (multipart_end(&m))
		buf_adds(&seen->events, "whole");
	else
		buf_adds(&seen->events, m.error);
	multipart_release(&m);
}

static void
check_header(const char *s, size_t len)
{
	auto_buf struct buf value = BUF_INIT(len);
	auto_buf struct buf name = BUF_INIT(2 * len);
	auto_buf struct buf header = BUF_INIT(16 * len + 64);

	(void)disposition_get(&value, s, len, "name");
	if (!disposition_get_filename(&name, s, len))
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

	run(&whole, body, size, size > 0 ? size : 1);
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
