/* SPDX-License-Identifier: MIT */
#ifndef REST_H
#define REST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

/*
 * Discord's REST API as we use it, over libcurl; connections are kept.
 * Retries, rate limits and the life of a token follow the contract: 429 waits
 * for retry_after, 5xx and connection errors back off 1, 2, 4, 8 s with jitter,
 * 404 right after a deferral is tried again for about 10 s, 50027 means that
 * the token is dead.  A block (Cloudflare's, a global limit) and the number of
 * invalid requests are known to all processes that share a limiter (limiter.h).
 * Everything that Discord answers is bounded (1 MiB) and checked.
 */
struct rest;

/* Header of each request, in the form that Discord asks for.  Cloudflare
 * refuses requests without it.  The URL is a variable of the build. */
#define REST_USER_AGENT "DiscordBot (" INLINE_URL ", " INLINE_VERSION ")"

/* api_base is borrowed; bot_token, "" when unset, is for application routes
 * only.  limiter_path: the file of the limiter.  With NULL, or a file that
 * cannot be opened (which is logged), the limiter is this process's own.
 * stop_fd: a descriptor that becomes readable when the process should end (a
 * signalfd; never read here, -1: none).  From then on a call that waits has at
 * most 10 s left and then says REST_LATER. */
struct rest *rest_new(const char *api_base, const char *bot_token,
    int64_t application_id, const char *limiter_path, int stop_fd,
    struct err *err);
void rest_free(struct rest *rest);

/* Log the end of a block.  Each call does so, too. */
void rest_note_end(struct rest *rest);

/* A try, as reported to the function of rest_watch(). */
struct rest_exchange {
	enum rest_route {
		REST_ROUTE_EDIT, /* or a further message */
		REST_ROUTE_DELETE,
		REST_ROUTE_FETCH, /* rest_download() */
		REST_ROUTE_APPLICATION,
	} route;
	int status; /* HTTP status, 0: no answer */
	int64_t took_us;
	enum rest_limit {
		REST_LIMIT_NONE,
		REST_LIMIT_ROUTE,  /* of this route and token */
		REST_LIMIT_SHARED, /* not for what we alone have sent */
		REST_LIMIT_GLOBAL,
		REST_LIMIT_BLOCK, /* Cloudflare's, in Discord's place */
	} limit;		  /* limit that the answer reports */
	int64_t blocked_ms;	  /* remaining time of a block */
};
/* Call this function after each exchange from now on. */
void rest_watch(struct rest *rest,
    void (*tell)(void *arg, const struct rest_exchange *exchange), void *arg);

/* A file to upload. */
struct rest_file {
	char *name; /* already cleaned for Discord */
	void *data;
	size_t len;
};

enum rest_outcome {
	REST_DONE,
	REST_GONE,    /* for good: token dead, message deleted, 404 for long */
	REST_REFUSED, /* Discord refused the request (400, 403, 413 …).  Another
		       * body may succeed; status and code say more */
	REST_LATER,   /* not delivered within the deadline, or all requests are
		       * blocked; may be retried */
	REST_DROPPED, /* the call must not wait, and would have had to */
};

#define REST_MESSAGE_SIZE 256

struct rest_reply {
	int status; /* HTTP status of the last answer, 0: none */
	/* Headers: the time to wait, X-RateLimit-Remaining and -Reset-After,
	 * each -1 if it is not given; the date, Unix seconds, 0 or -1: none. */
	int64_t retry_after_ms; /* the body's, if that has one */
	int64_t remaining;
	int64_t reset_after_ms;
	int64_t date;
	bool shared;  /* 429: not for what we alone have sent */
	bool is_json; /* Content-Type: application/json */
	/* Members of its body: */
	int64_t code; /* Discord's error code, 0: none */
	/* Discord's text, "": none; cut to fit, not cleaned */
	char message[REST_MESSAGE_SIZE];
	bool json;   /* the answer was an error of Discord's own: an object with
		      * message and code */
	bool global; /* 429: the limit is for all that we send */
};

/* Does the server's moderation (AutoMod) forbid such a text there? */
bool rest_is_moderated(const struct rest_reply *reply);

/* A call about a message begins no try later than this after its start, as its
 * worker has other users to serve. */
#define REST_HOLD_MS 20000

enum rest_patience {
	REST_FINAL,    /* tried again for REST_HOLD_MS, then REST_LATER */
	REST_ONCE,     /* one try; dropped when it would have to wait */
	REST_PROGRESS, /* the same, and dropped while progress edits are */
};

/* A message of an interaction's. */
struct rest_target {
	enum rest_message { REST_ORIGINAL, REST_FURTHER, REST_DELETION } which;
	const char *token; /* not empty */
	int64_t until_ms;  /* wall clock time at which the token dies */
};

/* Send a JSON body and up to ten files (their "attachments" array is already in
 * the body): PATCH …/messages/@original, or POST one more message after that,
 * which may come twice.  Or DELETE the original, without a body; REST_GONE: it
 * is not there. */
enum rest_outcome rest_send_message(struct rest *rest,
    const struct rest_target *target, const char *body,
    const struct rest_file *files, size_t file_count,
    enum rest_patience patience, struct rest_reply *reply, struct err *err);
/* Wait for ms, or until the process should end. */
void rest_pause(const struct rest *rest, int64_t ms);

/* Call a route of applications, with the bot's token, as PUT for
 * "<id>/commands"; body: JSON, NULL: none.  answer receives the body of the
 * answer, JSON or not. */
enum rest_outcome rest_application(struct rest *rest, const char *method,
    const char *path, const char *body, enum rest_patience patience,
    struct buf *answer, struct rest_reply *reply, struct err *err);
/* Largest answer of the API, in bytes. */
#define REST_ANSWER_MAX (1024 * 1024)

/* Fetch an attachment that a user uploaded: only from Discord's two CDN hosts
 * over https (or from api_base's own origin when that is on 127.0.0.1), no
 * redirects, at most `max` bytes, within 15 to 60 s by `max`.  *data is heap
 * with a NUL behind, the caller frees. */
enum rest_outcome rest_download(struct rest *rest, const char *url, size_t max,
    void **data, size_t *len, struct err *err);

#endif
