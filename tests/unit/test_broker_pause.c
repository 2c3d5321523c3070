/* SPDX-License-Identifier: MIT */
#include "tap.h"

#include "broker/policy.h"

/* Length of the backoff after the n-th failure in a row, in ms. */
static int64_t
held_after(int n)
{
	struct pause pause = { .most_ms = PAUSE_MOST_MS };

	for (int i = 0; i < n; i++)
		pause_note_failure(&pause, REFUSAL_START, "why", 5000);
	return pause.until_ms - 5000;
}

int
main(void)
{
	struct pause pause = { .most_ms = 2500 };

	ok(!pause_holds(&pause, 0), "nothing has failed: no pause");
	is_int(held_after(1), 1000, "the first pause");
	is_int(held_after(2), 2000, "grows");
	is_int(held_after(6), 32000, "and grows");
	is_int(held_after(7), 60000, "to its ceiling");
	is_int(held_after(1000), 60000, "and no further");
	pause_note_failure(&pause, REFUSAL_ENGINE, "slow", 5000);
	ok(pause_holds(&pause, 5999) && !pause_holds(&pause, 6000),
	    "it holds for so long");
	ok(!pause_refuses(&pause, 5500), "one failure may be chance");
	pause_note_failure(&pause, REFUSAL_ENGINE, "slow", 6000);
	ok(pause_refuses(&pause, 7999) && !pause_refuses(&pause, 8000),
	    "after two who waits is told");
	is_str(pause.text, "slow", "why");
	pause_note_success(&pause);
	ok(!pause_holds(&pause, 6001), "a success ends it");
	pause_note_failure(&pause, REFUSAL_START, "", 9000);
	is_int(pause.until_ms, 10000, "and it begins anew");
	pause_note_failure(&pause, REFUSAL_START, "", 10000);
	pause_note_failure(&pause, REFUSAL_START, "", 12000);
	is_int(pause.until_ms, 14500, "it has the ceiling that it was given");
	return tap_done();
}
