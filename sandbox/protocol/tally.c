/* SPDX-License-Identifier: MIT */
#include "protocol/tally.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/config.h"
#include "base/shared_file.h"

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

void
tally_tell(struct buf *out, const struct tally *tally, const char *const *kinds,
    size_t count, int64_t now_ms)
{
	static const char blocked[] = "inline_discord_blocked_seconds";
	const struct exposition_label kind = { "kind", kinds, count };
	const struct exposition_label outcome = { "outcome", ends, TALLY_ENDS };
	const struct exposition_label way = { "way", tolds, TALLY_TOLDS };
	const struct exposition_label route = { "route", routes, TALLY_ROUTES };
	const struct exposition_label status = { "status", statuses,
		TALLY_STATUSES };
	const struct exposition_label scope = { "scope", limits, TALLY_LIMITS };
	int64_t left_ms = tally->blocked_until_ms - now_ms;

	assert(count <= TALLY_KINDS);
	exposition_table(out, "inline_jobs_total", "counter",
	    "Commands that a worker has ended, by how.", &kind, &outcome,
	    &tally->jobs[0][0]);
	exposition_histograms(out, "inline_job_wait_seconds",
	    "From a command's arrival until a worker had it.", NULL,
	    &tally->waited);
	exposition_histograms(out, "inline_job_duration_seconds",
	    "From then until it was told.", &kind, tally->took);
	exposition_table(out, "inline_answers_total", "counter",
	    "Answers to commands, by the way.", NULL, &way, tally->told);
	exposition_table(out, "inline_discord_requests_total", "counter",
	    "Requests to Discord's REST API and its files, by the answer.",
	    &route, &status, &tally->requests[0][0]);
	exposition_histograms(out, "inline_discord_request_duration_seconds",
	    "How long such a request took.", &route, tally->answered);
	exposition_table(out, "inline_discord_limits_total", "counter",
	    "Answers of Discord that a limit is reached, by whose it is.", NULL,
	    &scope, tally->limits);
	exposition_head(out, blocked, "gauge",
	    "For how long nothing is sent to Discord.");
	exposition_seconds(out, blocked, left_ms > 0 ? left_ms * 1000 : 0);
}
