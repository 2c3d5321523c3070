/* SPDX-License-Identifier: MIT */
#include "render.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "../../base/config.h"
#include "../../base/text.h"
#include "../../protocol/lease.h"
#include "../../protocol/lease_status.h"
#include "../../store/sandbox.h"

#define REPORT_MAX 4096

/* ---- sandboxes ---- */

void
render_created(struct message *message, const struct sandbox *sandbox,
    bool created, const struct config *config)
{
	struct buf *lead = &message->lead;

	buf_adds(lead,
	    created ? _("Your sandbox is ready. ") :
		      _("You have a sandbox already. "));
	buf_addf(lead,
	    _("It holds %s in %s. `/il py` runs Python in it, for up to %g s, "
	      "with %s of memory, %g %s and no network. `/il pip` installs "
	      "packages."),
	    text_size(config->quota).text, phrase_files(config->files).text,
	    (double)config->timeout_ms / 1e3, text_size(config->memory).text,
	    (double)config->milli_cpus / 1e3,
	    config->milli_cpus > 1000 ? _("CPUs") : _("CPU"));
	if (sandbox->pinned) {
		buf_adds(lead, _("\nIt does not expire."));
		return;
	}
	buf_addf(lead,
	    _("\nIt expires <t:%" PRId64 ":R>; each use keeps it for %s more."),
	    sandbox->expires_at, phrase_span(config->retention_seconds).text);
}

void
render_made(struct message *message, int64_t lost_at)
{
	struct buf *tail = &message->tail;

	if (lost_at != 0)
		buf_addf(tail,
		    _("\n-# Your sandbox expired <t:%" PRId64
		      ":R>, because it was not used for a while, and its files "
		      "are gone. This is a new one."),
		    lost_at);
	else
		buf_adds(tail,
		    _("\n-# A sandbox of your own was made for this. `/il "
		      "create` says what it allows."));
}

void
render_moved(struct message *message, const char *host, int64_t files_at)
{
	struct buf *tail = &message->tail;

	if (files_at > 0)
		buf_addf(tail,
		    _("\n-# The host %s was lost, and your sandbox has moved "
		      "to another one. Its files are as of <t:%" PRId64 ":f>."),
		    host, files_at);
	else if (files_at == FILES_UNREAD)
		buf_addf(tail,
		    _("\n-# The host %s was lost, and with it the files of "
		      "your sandbox: their copy could not be read. It is empty "
		      "now."),
		    host);
	else
		buf_addf(tail,
		    _("\n-# The host %s was lost, and with it the files of "
		      "your sandbox: there was no copy. It is empty now."),
		    host);
}

/* ---- the service ---- */

/* Lines about the parts of the service, and whether all of them are well. */
struct report {
	struct buf *lines;
	bool well;
};

/* A part that is not well stands out. */
static void __attribute__((format(printf, 3, 4)))
add_line(struct report *r, bool well, const char *fmt, ...)
{
	va_list ap;

	buf_adds(r->lines, well ? "\n" : _("\n**Problem** · "));
	va_start(ap, fmt);
	buf_addv(r->lines, fmt, ap);
	va_end(ap);
	r->well = r->well && well;
}

/* The interpreter's version is known once a cell has told it. */
static void
add_image(struct report *r, const struct lease_status *status)
{
	add_line(r, status->image, _("Image %s"),
	    phrase_name(status->image_name, 80).text);
	if (!status->image) {
		buf_adds(r->lines, _(": missing"));
	} else if (status->python[0] != '\0') {
		buf_adds(r->lines, ": Python ");
		text_add_clean(r->lines, status->python,
		    strlen(status->python));
	} else {
		buf_adds(r->lines, _(": present"));
	}
}

/* Where one more sandbox could not be written to, most people only read. */
static void
add_disk(struct report *r, const struct lease_status *status)
{
	int64_t kept = status->floor + status->promised;

	add_line(r, status->free_bytes > kept, _("Free disk: %s"),
	    text_size(status->free_bytes).text);
	if (kept == 0)
		return;
	buf_addf(r->lines, _(", of which %s are spoken for"),
	    text_size(kept).text);
	if (status->free_bytes <= kept)
		buf_adds(r->lines, _(": runs can read files, not write them"));
}

/* What il-sandboxd knows: the engine, the image, its cells, the disk. */
static void
add_broker(struct report *r, const struct lease_status *status)
{
	add_line(r, status->engine, _("Docker: %s"),
	    status->engine		  ? _("reachable") :
		status->engine_age_ms < 0 ? _("not asked yet") :
					    _("does not answer"));
	if (status->engine_age_ms >= 0)
		buf_addf(r->lines, _(" (asked %" PRId64 " s ago)"),
		    status->engine_age_ms / 1000);
	if (status->image_name[0] != '\0')
		add_image(r, status);
	add_line(r, true,
	    _("Sandboxes: %" PRId64 " started, %" PRId64 " in use, %" PRId64
	      " starting, %" PRId64 " waited for"),
	    status->cells, status->leased, status->starting, status->waiting);
	add_disk(r, status);
}

/* What the database knows, when it answers. */
static void
add_queue(struct report *r, const struct job_counts *counts, int64_t queue_max)
{
	add_line(r, counts != NULL, _("Database: %s"),
	    counts != NULL ? _("answers") : _("does not answer"));
	if (counts == NULL)
		return;
	add_line(r, counts->queued < queue_max,
	    _("Queue: %" PRId64 " waiting, %" PRId64 " running"),
	    counts->queued, counts->running);
	if (counts->oldest_ms > 0)
		buf_addf(r->lines, _(", the oldest for %s"),
		    phrase_duration(counts->oldest_ms * 1000).text);
}

void
render_health(struct message *message, const char *broker_error,
    const struct lease_status *status, const struct job_counts *counts,
    int64_t queue_max, int64_t skew_ms)
{
	auto_buf struct buf lines = BUF_INIT(REPORT_MAX);
	struct report report = { .lines = &lines, .well = true };

	if (broker_error != NULL)
		add_line(&report, false, _("Docker: unknown, il-sandboxd %s"),
		    broker_error);
	else
		add_broker(&report, status);
	add_queue(&report, counts, queue_max);
	add_line(&report, skew_ms > -5000 && skew_ms < 5000,
	    _("Clock: %+" PRId64 " ms skew against Discord's"), skew_ms);
	buf_addf(&message->lead, "%s%s\n-# Inline " INLINE_VERSION,
	    report.well ? _("All is well.") : _("Not all is well."),
	    buf_str(&lines));
}
