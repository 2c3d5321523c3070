/* SPDX-License-Identifier: MIT */
#include "worker/render/render.h"

#include <inttypes.h>

#include "base/config.h"
#include "base/text.h"
#include "store/sandbox.h"

#define TEXT_NO_SESSION \
	N_("There is no session. `/il session start` begins one.")

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

/* ---- sessions ---- */

void
render_session_start(struct message *message, const struct config *config)
{
	if (config->sessions == 0)
		buf_adds(&message->lead, _("There are no sessions here."));
	else
		buf_addf(&message->lead,
		    _("Your session is on: variables and imports stay from run "
		      "to run, until you run nothing for %s."),
		    phrase_span(config->session_seconds).text);
}

void
render_session_stop(struct message *message, bool was_on)
{
	buf_adds(&message->lead,
	    was_on ? _("Your session is over, its variables are gone.") :
		     _(TEXT_NO_SESSION));
}

void
render_session_status(struct message *message, const struct session *session,
    int64_t until)
{
	if (session->started_at == 0 && until == 0) {
		buf_adds(&message->lead, _(TEXT_NO_SESSION));
		return;
	}
	if (session->started_at != 0)
		buf_addf(&message->lead,
		    _("Your session has been on since <t:%" PRId64 ":f>.\n"),
		    session->started_at);
	if (until == 0) {
		buf_adds(&message->lead, _("Nothing is in memory now."));
		return;
	}
	buf_addf(&message->lead,
	    Q_("%s variable", "%s variables", session->names),
	    phrase_count(session->names).text);
	buf_addf(&message->lead,
	    _(", %1$s of memory: kept until <t:%2$" PRId64
	      ":t> if you run nothing."),
	    text_size(session->bytes).text, until);
}

void
render_session_ended(struct message *message, enum kept_end why)
{
	static const char *const reasons[] = {
		[KEPT_RESTED] = N_("it was not used for long"),
		[KEPT_GAVE_WAY] = N_("others needed its place"),
		[KEPT_PACKAGES] = N_("packages were changed"),
		[KEPT_REPLACED] = N_("its sandbox was started anew"),
		[KEPT_DIED] = N_("it was ended from outside"),
		[KEPT_RESTARTED] = N_("the service was restarted"),
		[KEPT_STOPPED] = N_("you stopped it"),
		[KEPT_EXITED] = N_("the code ended Python itself"),
		[KEPT_TIME] = N_("the time limit was reached"),
		[KEPT_OUTPUT] = N_("the output limit was reached"),
		[KEPT_MEMORY] = N_("the memory limit was reached"),
		[KEPT_SIGNAL] = N_("the code crashed"),
		[KEPT_BROKEN_OFF] = N_("the run was broken off"),
		[KEPT_PROCESSES] = N_("it had too many processes or threads"),
	};

	if (why < KEPT_RESTED || why > KEPT_PROCESSES)
		return;
	buf_addf(&message->tail,
	    _("\n-# The session had ended: %s. This run began a new one."),
	    _(reasons[why]));
}
