/*
 * Lets a test put many inputs through the pure functions of fcgi/api.  Reads
 * "COMMAND LENGTH\n" and so many bytes, again and again, and answers each with
 * "LENGTH\n" and so many bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fcgi/api/base64.h"
#include "fcgi/api/pydump.h"
#include "fcgi/api/pyjson.h"
#include "fcgi/api/pyrepr.h"
#include "fcgi/api/pyutf8.h"
#include "sandbox/base/buf.h"

#define INPUT_MAX ((size_t)1 << 28)

static void
json(struct buf *out, const char *in, size_t len, enum pyjson_source source,
    void (*add)(struct buf *out, const struct pyvalue *value))
{
	struct pyjson doc;
	struct pyjson_error error;

	if (!pyjson_parse(&doc, in, len, source, &error)) {
		buf_adds(out,
		    error.fault == PYJSON_LIMIT ? "LIMIT " : "ERROR ");
		pyjson_explain(out, &error);
		return;
	}
	buf_adds(out, "OK ");
	add(out, &doc.root);
	pyjson_release(&doc);
}

static void
json_decoded(struct buf *out, const char *in, size_t len)
{
	json(out, in, len, PYJSON_DECODED, pyrepr_add);
}

static void
json_bytes(struct buf *out, const char *in, size_t len)
{
	json(out, in, len, PYJSON_BYTES, pyrepr_add);
}

static void
json_dump(struct buf *out, const char *in, size_t len)
{
	json(out, in, len, PYJSON_DECODED, pydump_add);
}

static void
ascii(struct buf *out, const char *in, size_t len)
{
	pydump_add_string(out, in, len, PYDUMP_ASCII);
}

static void
printable(struct buf *out, const char *in, size_t len)
{
	(void)in;
	(void)len;
	for (uint32_t code = 0; code < 0x110000; code++)
		buf_addc(out, pyrepr_is_printable(code) ? '1' : '0');
}

static void
base64(struct buf *out, const char *in, size_t len)
{
	char *decoded = xmalloc(len);
	size_t n = 0;

	if (base64_decode(in, len, decoded, &n)) {
		buf_adds(out, "OK ");
		buf_add(out, decoded, n);
	} else {
		buf_adds(out, "ERROR");
	}
	free(decoded);
}

static void
unbase64(struct buf *out, const char *in, size_t len)
{
	base64_add(out, in, len);
}

/* Pieces whose lengths the bytes themselves give. */
static void
replace(struct buf *out, const char *in, size_t len)
{
	struct pyutf8 decoder = { .count = 0 };

	while (len > 0) {
		size_t piece = 1 + (unsigned char)in[0] % 3;

		if (piece > len)
			piece = len;
		pyutf8_add(&decoder, out, in, piece);
		in += piece;
		len -= piece;
	}
	pyutf8_end(&decoder, out);
}

struct command {
	const char *name;
	void (*run)(struct buf *out, const char *in, size_t len);
};

static const struct command commands[] = {
	{ "json", json_decoded },
	{ "json-bytes", json_bytes },
	{ "dump", json_dump },
	{ "ascii", ascii },
	{ "printable", printable },
	{ "base64", base64 },
	{ "unbase64", unbase64 },
	{ "replace", replace },
};

static void
answer(const char *name, const char *in, size_t len)
{
	struct buf out;

	buf_init(&out, (size_t)1 << 30);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, name) == 0)
			commands[i].run(&out, in, len);
	printf("%zu\n", out.len);
	(void)fwrite(buf_str(&out), 1, out.len, stdout);
	(void)fflush(stdout);
	buf_release(&out);
}

int
main(void)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		char *blank = strchr(line, ' ');
		size_t len = blank == NULL ? INPUT_MAX + 1 :
					     strtoul(blank + 1, NULL, 10);
		char *in;

		if (len > INPUT_MAX)
			return 1;
		*blank = '\0';
		in = xmalloc(len);
		if (fread(in, 1, len, stdin) != len)
			return 1;
		answer(line, in, len);
		free(in);
	}
	return 0;
}
