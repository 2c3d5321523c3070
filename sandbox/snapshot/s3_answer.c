/* SPDX-License-Identifier: MIT */
#include "s3_answer.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define FIRST_WAIT_MS 250
#define WAIT_MOST_MS 30000

/* The text of the first element of that name, if it is short and of letters,
 * digits and what tokens have; "" otherwise. */
static void
element(const char *xml, const char *name, char *text, size_t size)
{
	char open[40];
	const char *at;
	size_t len;

	(void)snprintf(open, sizeof(open), "<%s>", name);
	at = strstr(xml, open);
	*text = '\0';
	if (at == NULL)
		return;
	at += strlen(open);
	len = strcspn(at, "<");
	if (len >= size || at[len] == '\0' ||
	    strspn(at,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789+/=._-~:|![]{}()*,;@$%^?") != len)
		return;
	memcpy(text, at, len);
	text[len] = '\0';
}

static struct s3_verdict
failed(enum err_code code, const char *what, int status, const char *detail)
{
	struct s3_verdict v = { .outcome = S3_FAILED, .code = code };

	if (status != 0)
		(void)snprintf(v.text, sizeof(v.text), "S3 %s (%d%s%s)", what,
		    status, *detail != '\0' ? " " : "", detail);
	else
		(void)snprintf(v.text, sizeof(v.text), "S3 %s%s%s", what,
		    *detail != '\0' ? ": " : "", detail);
	return v;
}

static struct s3_verdict
again(const struct s3_answer *a, const char *detail)
{
	struct s3_verdict v = { .outcome = S3_AGAIN };

	if (a->tries + 1 >= S3_TRIES)
		return failed(ERR_UNAVAILABLE,
		    a->status != 0 ? "is not at its best" : "does not answer",
		    a->status, detail);
	v.wait_ms = FIRST_WAIT_MS << a->tries;
	if (a->retry_after_ms > v.wait_ms)
		v.wait_ms = a->retry_after_ms;
	if (v.wait_ms > WAIT_MOST_MS)
		v.wait_ms = WAIT_MOST_MS;
	v.brake = a->status == 429 || a->status == 503;
	return v;
}

static struct s3_verdict
absent(const struct s3_answer *a, const char *code)
{
	if (strcmp(code, "NoSuchBucket") == 0)
		return failed(ERR_CONFIG, "has no such bucket", 404, code);
	if (a->method == S3_DELETE)
		return (struct s3_verdict){ .outcome = S3_DONE };
	/* any other one is not S3's word: a proxy without it, a wrong address;
	 * whoever took it for "none" would begin empty */
	if (strcmp(code, "NoSuchKey") == 0)
		return (struct s3_verdict){ .outcome = S3_ABSENT };
	return a->method == S3_GET ?
	    failed(ERR_UNAVAILABLE, "does not say what is not there", 404,
		code) :
	    failed(ERR_CONFIG, "does not take it", 404, code);
}

/* One that came, with another status than 2xx. */
static struct s3_verdict
refused(const struct s3_answer *a)
{
	char code[64];

	element(a->body, "Code", code, sizeof(code));
	if (a->status == 404)
		return absent(a, code);
	if (a->status == 408 || a->status == 429 || a->status >= 500)
		return again(a, code);
	if (a->status == 401 || a->status == 403)
		return failed(ERR_CONFIG,
		    "refuses the key of IL_SNAPSHOTS_KEY_FILE, or what it "
		    "wants",
		    a->status, code);
	if (a->status >= 300 && a->status < 400)
		return failed(ERR_CONFIG,
		    "is elsewhere: IL_SNAPSHOTS_ENDPOINT or _REGION is wrong",
		    a->status, code);
	return failed(ERR_CONFIG, "does not take it", a->status, code);
}

struct s3_verdict
s3_decide(const struct s3_answer *a)
{
	if (a->certificate)
		return failed(ERR_CONFIG, "has a certificate that does not fit",
		    0, a->text);
	if (a->status >= 300)
		return refused(a);
	if (a->status >= 200 && a->foreign)
		return again(a, "it does not answer as S3 does");
	if (a->too_long)
		return failed(ERR_INPUT, "answers with more than there can be",
		    a->status, "");
	if (!a->whole || a->status < 200)
		return again(a, a->text);
	return (struct s3_verdict){ .outcome = S3_DONE };
}

/* ---- a list ---- */

/* When an object was put, as what follows its name says, in len bytes:
 * "2026-11-24T20:13:00.000Z"; 0: it does not. */
static int64_t
time_of(const char *xml, size_t len)
{
	static const char open[] = "<LastModified>";
	const char *at = memmem(xml, len, open, strlen(open));
	char text[] = "2026-11-24T20:13:00";
	struct tm tm = { 0 };
	const char *end;
	time_t time;

	if (at == NULL ||
	    (size_t)(xml + len - at) < strlen(open) + strlen(text))
		return 0;
	memcpy(text, at + strlen(open), strlen(text));
	end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (end == NULL || *end != '\0')
		return 0;
	time = timegm(&tm);
	return time > 0 ? time : 0;
}

bool
s3_page(const char *xml, const char *prefix, const char *below,
    store_list_fn fn, void *arg, char next[S3_TOKEN_MAX])
{
	static const char open[] = "<Key>";
	size_t skip = strlen(prefix);
	const char *then;
	char more[8];

	if (strstr(xml, "</ListBucketResult>") == NULL)
		return false;
	for (const char *at = strstr(xml, open); at != NULL; at = then) {
		char name[STORE_NAME_MAX];
		size_t len;

		at += strlen(open);
		then = strstr(at, open);
		len = strcspn(at, "<");
		if (strncmp(at, prefix, skip) != 0 ||
		    len - skip >= sizeof(name))
			continue;
		memcpy(name, at + skip, len - skip);
		name[len - skip] = '\0';
		if (store_is_name(name, below))
			fn(arg, name,
			    time_of(at,
				then != NULL ? (size_t)(then - at) :
					       strlen(at)));
	}
	element(xml, "IsTruncated", more, sizeof(more));
	*next = '\0';
	if (strcmp(more, "true") != 0)
		return true;
	element(xml, "NextContinuationToken", next, S3_TOKEN_MAX);
	return *next != '\0';
}
