/* SPDX-License-Identifier: MIT */
#include "render_session.h"

#include <inttypes.h>

#include "../../base/config.h"
#include "../../base/text.h"
#include "../../store/session.h"
#include "render.h"

#define TEXT_NONE N_("There is no session. `/il session start` begins one.")

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
		     _(TEXT_NONE));
}

void
render_session_status(struct message *message, const struct session *session,
    int64_t until)
{
	if (session->started_at == 0 && until == 0) {
		buf_adds(&message->lead, _(TEXT_NONE));
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
