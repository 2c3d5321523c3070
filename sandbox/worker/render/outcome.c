#include "outcome.h"

#include <stdio.h>

bool
outcome_succeeded(const struct run_outcome *outcome)
{
	return outcome->end == RUN_RESULT &&
	    outcome->result.reason == REASON_EXIT &&
	    outcome->result.status == 0;
}

bool
outcome_failed_with(const struct run_outcome *outcome, enum cell_error error)
{
	return outcome->end == RUN_RESULT &&
	    outcome->result.reason == REASON_ERROR &&
	    outcome->result.error == error;
}

static const char *
refusal_word(enum refusal refusal)
{
	static const char *const words[] = {
		[REFUSAL_NONE] = "granted",
		[REFUSAL_INPUT] = "input",
		[REFUSAL_BUSY] = "busy",
		[REFUSAL_FULL] = "full",
		[REFUSAL_ENGINE] = "engine",
		[REFUSAL_IMAGE] = "image",
		[REFUSAL_NO_WORKSPACE] = "no workspace",
		[REFUSAL_DISK] = "disk",
		[REFUSAL_START] = "start",
		[REFUSAL_INTERPRETER] = "interpreter",
		[REFUSAL_SANDBOXES] = "sandboxes",
		[REFUSAL_UNREACHABLE] = "unreachable",
		[REFUSAL_TIME] = "timed out",
	};

	return words[refusal];
}

static void
result_word(const struct cell_result *result, char *word, size_t size)
{
	switch (result->reason) {
	case REASON_EXIT:
		(void)snprintf(word, size, "exit %d", result->status);
		break;
	case REASON_SIGNAL:
		(void)snprintf(word, size, "signal %d", result->signal);
		break;
	case REASON_TIME:
		(void)snprintf(word, size, "time limit");
		break;
	case REASON_MEMORY:
		(void)snprintf(word, size, "memory limit");
		break;
	case REASON_OUTPUT:
		(void)snprintf(word, size, "output limit");
		break;
	case REASON_ERROR:
		(void)snprintf(word, size, "error %d", (int)result->error);
		break;
	}
}

void
outcome_word(const struct run_outcome *outcome, char *word, size_t size)
{
	static const char *const words[] = {
		[RUN_TOO_LATE] = "too late",
		[RUN_OVERDUE] = "overdue",
		[RUN_STOPPED] = "stopped",
		[RUN_BROKEN] = "broken",
		[RUN_TAKEN] = "taken",
	};

	if (outcome->end == RUN_RESULT)
		result_word(&outcome->result, word, size);
	else if (outcome->end == RUN_REFUSED)
		(void)snprintf(word, size, "refused %s",
		    refusal_word(outcome->refusal));
	else
		(void)snprintf(word, size, "%s", words[outcome->end]);
}
