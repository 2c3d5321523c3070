/* SPDX-License-Identifier: MIT */
/* Counters of workers: in one file, together; a worker's death loses none. */
#include "protocol/tally.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/config.h"
#include "base/err.h"
#include "tap.h"

#define ROUNDS 10000
#define WORKERS 4

static struct config config;
static const char *const kinds[] = { "py", "pip" };

static bool
says(const struct tally *tally, const char *line)
{
	auto_buf struct buf text = BUF_INIT(1 << 16);
	const char *found;

	tally_tell(&text, tally, kinds, 2, 1000);
	found = strstr(buf_str(&text), line);
	return found != NULL && found > buf_str(&text) && found[-1] == '\n' &&
	    found[strlen(line)] == '\n';
}

/* Several count at one time, and are killed in the middle of it. */
static void
count_in_workers(void)
{
	struct err err;
	pid_t pids[WORKERS];

	for (int i = 0; i < WORKERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct tally *own = tally_open(&config, &err);

			for (int k = 0; k < ROUNDS; k++)
				own->jobs[0][TALLY_DONE]++;
			(void)raise(SIGSTOP);
			own->jobs[0][TALLY_DONE]++;
			_exit(0);
		}
	}
	for (int i = 0; i < WORKERS; i++) {
		(void)waitpid(pids[i], NULL, WUNTRACED);
		(void)kill(pids[i], SIGKILL);
		(void)waitpid(pids[i], NULL, 0);
	}
}

int
main(void)
{
	const char *state = tap_folder();
	auto_free char *folder = xprintf("%s/worker", state);
	auto_free char *path = xprintf("%s/tally-%s", folder, INLINE_VERSION);
	const struct tally *seen;
	struct tally *tally;
	struct err err;

	config.state_dir = xstrdup(state);
	(void)mkdir(folder, 0755);
	ok(tally_read(&config, &err) == NULL, "nobody has counted anything");
	count_in_workers();
	seen = tally_read(&config, &err);
	ok(seen != NULL, "it is there to look at");
	ok(says(seen, "inline_jobs_total{kind=\"py\",outcome=\"done\"} 40000"),
	    "what the dead have counted stays, and nothing is lost");
	ok(says(seen, "inline_jobs_total{kind=\"pip\",outcome=\"limit\"} 0"),
	    "what there was none of is told, too");
	tally = tally_open(&config, &err);
	tally_request(tally, TALLY_ROUTE_EDIT, 200, 1500);
	tally_request(tally, TALLY_ROUTE_EDIT, 0, 1500);
	tally_request(tally, TALLY_ROUTE_FETCH, 418, 1500);
	tally->blocked_until_ms = 3500;
	ok(says(seen,
	       "inline_discord_requests_total{route=\"edit\","
	       "status=\"200\"} 1"),
	    "a request, seen at once");
	ok(says(seen,
	       "inline_discord_requests_total{route=\"edit\","
	       "status=\"none\"} 1"),
	    "one without an answer");
	ok(says(seen,
	       "inline_discord_requests_total{route=\"fetch\","
	       "status=\"other\"} 1"),
	    "a status that has no place of its own");
	ok(says(seen, "inline_discord_blocked_seconds 2.500000"), "a block");
	tally->blocked_until_ms = 500;
	ok(says(seen, "inline_discord_blocked_seconds 0.000000"),
	    "that has passed");
	tally_close(tally);
	tally_close(seen);
	ok(truncate(path, 8) == 0 && tally_open(&config, &err) == NULL &&
		tally_read(&config, &err) == NULL,
	    "a file of another size is left alone");
	free(config.state_dir);
	return tap_done();
}
