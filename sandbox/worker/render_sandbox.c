#include "render.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "../base/config.h"
#include "../base/text.h"
#include "../lease/lease.h"
#include "../store/sandbox.h"

/* ---- sandboxes ---- */

static void
add_time_span(struct buf *out, int64_t seconds)
{
	static const struct {
		int64_t seconds;
		const char *name;
	} units[] = {
		{ 86400, "day" },
		{ 3600, "hour" },
		{ 60, "minute" },
		{ 1, "second" },
	};
	size_t i = 0;

	while (i < 3 && seconds % units[i].seconds != 0)
		i++;
	buf_addf(out, "%" PRId64 " %s%s", seconds / units[i].seconds,
	    units[i].name, seconds == units[i].seconds ? "" : "s");
}

static void
add_limits(struct buf *out, const struct config *config)
{
	buf_adds(out, "It holds ");
	text_add_size(out, config->quota);
	buf_addf(out, " in %" PRId64 " files. A run of `/il py` may take %g s, "
	    "%g CPU and ", config->files, (double)config->timeout_ms / 1e3,
	    config->cpus);
	text_add_size(out, config->memory);
	buf_adds(out, " of memory, and print ");
	text_add_size(out, config->output_limit);
	buf_adds(out, "; it has no network. `/il pip` installs packages.");
}

void
render_created(struct message *message, const struct sandbox *sandbox,
    bool created, const struct config *config)
{
	struct buf *lead = &message->lead;

	buf_adds(lead, created ? "Your sandbox is ready. " :
				 "You have a sandbox already. ");
	add_limits(lead, config);
	if (sandbox->pinned) {
		buf_adds(lead, "\nIt does not expire.");
		return;
	}
	message_leadf(message, "\nIt expires <t:%" PRId64 ":R>; each use "
	    "keeps it for ", sandbox->expires_at);
	add_time_span(lead, config->retention_seconds);
	buf_adds(lead, " more.");
}

void
render_deleted(struct message *message, bool at_once)
{
	message_leadf(message, at_once ?
		"Your sandbox and all its files are deleted. `/il create` "
		"makes a new one." :
		"Your sandbox is closed. Its files cannot be removed at this "
		"moment; that is done by itself as soon as it can be.");
}

/* ---- the service ---- */

static void __attribute__((format(printf, 3, 4)))
add_line(struct message *m, bool good, const char *fmt, ...)
{
	va_list ap;

	buf_adds(&m->lead, m->lead.len > 0 ? "\n" : "");
	buf_adds(&m->lead, good ? "✅ " : "❌ ");
	va_start(ap, fmt);
	buf_addv(&m->lead, fmt, ap);
	va_end(ap);
}

static void
add_broker(struct message *m, const struct lease_status *status)
{
	add_line(m, status->engine, "Docker: %s",
	    status->engine ? "reachable" : "does not answer");
	add_line(m, status->image, "Image ");
	message_add_name(&m->lead, status->image_name, 80);
	if (!status->image)
		buf_adds(&m->lead, ": missing");
	else if (status->python[0] != '\0') {
		buf_adds(&m->lead, ": Python ");
		text_add_clean(&m->lead, status->python,
		    strlen(status->python));
	} else {
		buf_adds(&m->lead, ": present");
	}
	add_line(m, true, "Cells: %" PRId64 " running, %" PRId64 " in use, "
	    "%" PRId64 " starting, %" PRId64 " requests waiting",
	    status->cells, status->leased, status->starting, status->waiting);
	add_line(m, true, "Free disk: ");
	text_add_size(&m->lead, status->free_bytes);
}

static void
add_queue(struct message *m, const struct render_health *health)
{
	const struct job_counts *counts = health->counts;

	add_line(m, health->database, "Database: %s",
	    health->database ? "answers" : "does not answer");
	if (!health->database)
		return;
	add_line(m, counts->queued < health->queue_max,
	    "Queue: %" PRId64 " waiting, %" PRId64 " running", counts->queued,
	    counts->running);
	if (counts->oldest_ms > 0) {
		buf_adds(&m->lead, ", the oldest for ");
		render_add_duration(&m->lead, counts->oldest_ms * 1000);
	}
}

void
render_health(struct message *message, const struct render_health *health)
{
	int64_t skew_ms = health->skew_ms;
	bool close = skew_ms > -5000 && skew_ms < 5000;

	if (health->broker_error != NULL)
		add_line(message, false, "Docker: unknown, il-sandboxd %s",
		    health->broker_error);
	else
		add_broker(message, health->status);
	add_queue(message, health);
	add_line(message, close, "Clock: %+" PRId64 " ms against Discord's",
	    skew_ms);
	message_leadf(message, "\nInline " INLINE_VERSION);
}
