/* SPDX-License-Identifier: MIT */
#include "worker/render/render_view.h"

#include "base/cleanup.h"

/* "`js`, `c`, `go`": an "and" would have to be translated by itself; heap. */
static char *
list_languages(const struct slip *others, size_t count)
{
	auto_buf struct buf list = BUF_INIT(MESSAGE_PART_MAX);

	for (size_t i = 0; i < count; i++)
		buf_addf(&list, "%s`%s`", i == 0 ? "" : ", ", others[i].word);
	return buf_steal(&list, NULL);
}

void
render_no_code(struct message *message, const struct slip *others, size_t count)
{
	auto_free char *languages = list_languages(others, count);

	if (count > 0)
		buf_addf(&message->lead,
		    _("The code in that message is marked %s, and only Python "
		      "runs here."),
		    languages);
	else
		buf_adds(&message->lead,
		    _("I found no code in that message. Put it "
		      "between three back-ticks, or attach a "
		      "`.py` file or a notebook."));
}

void
render_left_out(struct message *message, const struct slip *others,
    size_t count)
{
	auto_free char *languages = list_languages(others, count);

	if (count > 0)
		buf_addf(&message->tail,
		    _("\n-# Left out, as only Python runs here: %s"),
		    languages);
}

void
render_not_python(struct message *message, const char *name,
    const struct slip *others, size_t count)
{
	auto_free char *languages = list_languages(others, count);

	if (count > 0)
		buf_addf(&message->lead,
		    _("The code in %s is marked %s, but only Python runs "
		      "here."),
		    phrase_name(name, SCRIPT_SHOWN).text, languages);
	else
		buf_addf(&message->lead,
		    _("%s does not look like Python, so it was not run. Is it "
		      "Python? Then give it a name that ends in `.py`."),
		    phrase_name(name, SCRIPT_SHOWN).text);
}

void
render_not_notebook(struct message *message, const char *name,
    enum source_fault fault, int line)
{
	struct phrase as = phrase_name(name, SCRIPT_SHOWN);
	struct buf *lead = &message->lead;

	switch (fault) {
	case SOURCE_FINE:
		break;
	case SOURCE_NOT_JSON:
		buf_addf(lead,
		    _("%s is a broken notebook: its JSON has an error in line "
		      "%d. Save it in Jupyter once more, then upload it "
		      "again."),
		    as.text, line);
		break;
	case SOURCE_NO_CELLS:
		buf_addf(lead,
		    _("%s is no notebook: it has no list of cells. Save it in "
		      "Jupyter once more, then upload it again."),
		    as.text);
		break;
	case SOURCE_NO_CODE:
		buf_addf(lead,
		    _("%s is a notebook without a code cell, so nothing was "
		      "run."),
		    as.text);
		break;
	case SOURCE_TOO_DEEP:
		buf_addf(lead,
		    _("%s has more parts than I can read. Clear its outputs in "
		      "Jupyter and save it, then upload it again."),
		    as.text);
		break;
	}
}
