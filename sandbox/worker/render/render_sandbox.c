/* SPDX-License-Identifier: MIT */
#include "render.h"

#include <inttypes.h>

#include "../../base/config.h"
#include "../../base/text.h"
#include "../../store/sandbox.h"

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
	    _("It holds %s in %s, and %s of packages beside them. `/il py` "
	      "runs Python in it, for up to %g s, with %s of memory, %g %s and "
	      "no network. `/il pip` installs packages."),
	    text_size(config->quota).text, phrase_files(config->files).text,
	    text_size(config->pip_quota).text, (double)config->timeout_ms / 1e3,
	    text_size(config->memory).text, (double)config->milli_cpus / 1e3,
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
