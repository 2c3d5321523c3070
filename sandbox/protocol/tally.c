/* SPDX-License-Identifier: MIT */
#include "tally.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/shared_file.h"

static_assert(ATOMIC_LLONG_LOCK_FREE == 2,
    "other processes must see whole numbers");

/* One of another version may have other places. */
#define TALLY_FILE "worker/tally-" INLINE_VERSION

static const char *const statuses[TALLY_STATUSES] = { "200", "204", "400",
	"401", "403", "404", "405", "408", "413", "429", "500", "502", "503",
	"504", "520", "none", "other" };
#define STATUS_NONE (TALLY_STATUSES - 2)
#define STATUS_OTHER (TALLY_STATUSES - 1)

static const char *const ends[TALLY_ENDS] = {
	[TALLY_DONE] = "done",
	[TALLY_FAILED] = "failed",
	[TALLY_LIMIT] = "limit",
	[TALLY_REFUSED] = "refused",
	[TALLY_CANCELLED] = "cancelled",
	[TALLY_ERROR] = "error",
	[TALLY_INTERRUPTED] = "interrupted",
	[TALLY_TOO_LATE] = "too_late",
};

static const char *const tolds[TALLY_TOLDS] = {
	[TALLY_FIRST] = "first_response",
	[TALLY_EDIT] = "edit",
	[TALLY_NOBODY] = "undeliverable",
};

static const char *const routes[TALLY_ROUTES] = {
	[TALLY_ROUTE_EDIT] = "edit",
	[TALLY_ROUTE_DELETE] = "delete",
	[TALLY_ROUTE_FETCH] = "fetch",
};

static const char *const limits[TALLY_LIMITS] = {
	[TALLY_LIMIT_ROUTE] = "route",
	[TALLY_LIMIT_SHARED] = "shared",
	[TALLY_LIMIT_GLOBAL] = "global",
	[TALLY_LIMIT_BLOCK] = "block",
};

struct tally *
tally_open(const struct config *config, struct err *err)
{
	auto_free char *path = config_state_path(config, TALLY_FILE);

	return shared_file_open(path, sizeof(struct tally), err);
}

const struct tally *
tally_read(const struct config *config, struct err *err)
{
	auto_free char *path = config_state_path(config, TALLY_FILE);

	return shared_file_read(path, sizeof(struct tally), err);
}

void
tally_close(const struct tally *tally)
{
	shared_file_close(tally, sizeof(*tally));
}

void
tally_request(struct tally *tally, enum tally_route route, int status,
    int64_t took_us)
{
	size_t i = status == 0 ? STATUS_NONE : 0;
	char word[16];

	(void)snprintf(word, sizeof(word), "%d", status);
	while (i < STATUS_NONE && strcmp(statuses[i], word) != 0)
		i++;
	if (status != 0 && i == STATUS_NONE)
		i = STATUS_OTHER;
	tally->requests[route][i]++;
	histogram_observe(&tally->answered[route], took_us);
}

/* ---- telling ---- */

/* Zeros, too: what grows from nothing to one has not grown to Prometheus. */
static void
tell_jobs(struct buf *out, const struct tally *tally, const char *const *kinds,
    size_t count)
{
	static const char total[] = "inline_jobs_total";
	static const char wait[] = "inline_job_wait_seconds";
	static const char took[] = "inline_job_duration_seconds";
	char labels[128];

	exposition_head(out, total, "counter",
	    "Commands that a worker has ended, by how.");
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < TALLY_ENDS; k++) {
			(void)snprintf(labels, sizeof(labels),
			    "kind=\"%s\",outcome=\"%s\"", kinds[i], ends[k]);
			exposition_number(out, total, labels,
			    tally->jobs[i][k]);
		}
	exposition_head(out, wait, "histogram",
	    "From a command's arrival until a worker had it.");
	exposition_histogram(out, wait, "", &tally->waited);
	exposition_head(out, took, "histogram", "From then until it was told.");
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(labels, sizeof(labels), "kind=\"%s\"", kinds[i]);
		exposition_histogram(out, took, labels, &tally->took[i]);
	}
}

/* A family with one label. */
static void
tell_row(struct buf *out, const char *name, const char *help, const char *key,
    const char *const *names, const _Atomic int64_t *numbers, size_t count)
{
	char labels[64];

	exposition_head(out, name, "counter", help);
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(labels, sizeof(labels), "%s=\"%s\"", key,
		    names[i]);
		exposition_number(out, name, labels, numbers[i]);
	}
}

static void
tell_requests(struct buf *out, const struct tally *tally)
{
	static const char total[] = "inline_discord_requests_total";
	static const char took[] = "inline_discord_request_duration_seconds";
	char labels[64];

	exposition_head(out, total, "counter",
	    "Requests to Discord's REST API and its files, by the answer.");
	for (size_t i = 0; i < TALLY_ROUTES; i++)
		for (size_t k = 0; k < TALLY_STATUSES; k++) {
			(void)snprintf(labels, sizeof(labels),
			    "route=\"%s\",status=\"%s\"", routes[i],
			    statuses[k]);
			exposition_number(out, total, labels,
			    tally->requests[i][k]);
		}
	exposition_head(out, took, "histogram",
	    "How long such a request took.");
	for (size_t i = 0; i < TALLY_ROUTES; i++) {
		(void)snprintf(labels, sizeof(labels), "route=\"%s\"",
		    routes[i]);
		exposition_histogram(out, took, labels, &tally->answered[i]);
	}
}

void
tally_tell(struct buf *out, const struct tally *tally, const char *const *kinds,
    size_t count, int64_t now_ms)
{
	static const char blocked[] = "inline_discord_blocked_seconds";
	int64_t left_ms = tally->blocked_until_ms - now_ms;

	assert(count <= TALLY_KINDS);
	tell_jobs(out, tally, kinds, count);
	tell_row(out, "inline_answers_total",
	    "Answers to commands, by the way.", "way", tolds, tally->told,
	    TALLY_TOLDS);
	tell_requests(out, tally);
	tell_row(out, "inline_discord_limits_total",
	    "Answers of Discord that a limit is reached, by whose it is.",
	    "scope", limits, tally->limits, TALLY_LIMITS);
	exposition_head(out, blocked, "gauge",
	    "For how long nothing is sent to Discord.");
	exposition_seconds(out, blocked, left_ms > 0 ? left_ms * 1000 : 0);
}
