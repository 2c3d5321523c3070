/* SPDX-License-Identifier: MIT */
/* Counters: what they say, in several processes, and that Prometheus can read
 * it. */
#include "api/metrics.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/config.h"
#include "files/filestore.h"
#include "server/health.h"
#include "tap.h"

static const char *const routes[] = { "/eval", "/v1/execute", "/eval", "other",
	NULL };

static struct metrics m;
static struct buf text = BUF_INIT(1 << 20);
static struct config config;
static struct health health;
static struct filestore_usage usage = { .files = 2, .bytes = 5 };
static const struct filestore store = { .limits.quota = 9, .usage = &usage };

static bool
says(const char *line)
{
	const char *found = strstr(buf_str(&text), line);

	return found != NULL &&
	    (found == buf_str(&text) || found[-1] == '\n') &&
	    found[strlen(line)] == '\n';
}

#define check_line(line) ok(says(line), line)

/* Every line is a comment or "name{labels} number"; a family has its head, and
 * stands in one piece. */
static bool
is_readable(void)
{
	char family[100] = "";
	char *copy = xstrdup(buf_str(&text));
	char *rest = copy;
	char *line;
	bool good = copy[0] != '\0';

	while (good && (line = strsep(&rest, "\n")) != NULL) {
		if (strncmp(line, "# TYPE ", 7) == 0)
			(void)snprintf(family, sizeof(family), "%.*s",
			    (int)strcspn(line + 7, " "), line + 7);
		else if (line[0] != '#' && line[0] != '\0')
			good = strncmp(line, family, strlen(family)) == 0 &&
			    strrchr(line, ' ') != NULL &&
			    strspn(strrchr(line, ' ') + 1, "0123456789.-") ==
				strlen(strrchr(line, ' ') + 1);
		if (!good)
			note("%s in %s", line, family);
	}
	free(copy);
	return good;
}

static void
count_in_children(void)
{
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			for (int k = 0; k < 10000; k++)
				metrics_request(&m, 1, 422, 100, 1, 2);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

/* A child of an index counts, and ends. */
static void
change_in_child(size_t index, enum metrics_gauge gauge, int64_t by)
{
	if (fork() == 0) {
		metrics_begin(&m, index);
		metrics_change(&m, gauge, by);
		_exit(0);
	}
	(void)wait(NULL);
}

static void
test_processes(void)
{
	change_in_child(1, METRICS_REQUESTS, 2);
	change_in_child(2, METRICS_REQUESTS, 3);
	change_in_child(1000000, METRICS_REQUESTS, 4);
	buf_reset(&text);
	metrics_add(&text, &m, &config, &health, &store);
	check_line("inline_api_requests 5");
	change_in_child(1, METRICS_WAITING, 3);
	change_in_child(2, METRICS_WAITING, 0);
	buf_reset(&text);
	metrics_add(&text, &m, &config, &health, &store);
	ok(says("inline_api_requests 0") && says("inline_api_waiting 3") &&
		says("inline_api_running 1"),
	    "what dead children have left is gone with the next ones");
}

/* Lines that hold more than one family shows. */
static void
test_lines(void)
{
	buf_reset(&text);
	metrics_add(&text, &m, &config, &health, &store);
	ok(strstr(buf_str(&text),
	       "# HELP inline_api_queue_seconds How long requests waited to be "
	       "taken.\n"
	       "# TYPE inline_api_queue_seconds histogram\n"
	       "inline_api_queue_seconds_bucket{le=\"0.001\"} 0\n"
	       "inline_api_queue_seconds_bucket{le=\"0.002\"} 1\n"
	       "inline_api_queue_seconds_bucket{le=\"0.005\"} 1\n"
	       "inline_api_queue_seconds_bucket{le=\"0.01\"} 1\n"
	       "inline_api_queue_seconds_bucket{le=\"0.02\"} 1\n"
	       "inline_api_queue_seconds_bucket{le=\"0.05\"} 1\n"
	       "inline_api_queue_seconds_bucket{le=\"0.1\"} 1\n"
	       "inline_api_queue_seconds_bucket{le=\"0.2\"} 1\n"
	       "inline_api_queue_seconds_bucket{le=\"0.5\"} 1\n"
	       "inline_api_queue_seconds_bucket{le=\"1\"} 1\n"
	       "inline_api_queue_seconds_bucket{le=\"2\"} 1\n"
	       "inline_api_queue_seconds_bucket{le=\"5\"} 1\n"
	       "inline_api_queue_seconds_bucket{le=\"20\"} 1\n"
	       "inline_api_queue_seconds_bucket{le=\"60\"} 1\n"
	       "inline_api_queue_seconds_bucket{le=\"+Inf\"} 1\n"
	       "inline_api_queue_seconds_sum 0.001500\n"
	       "inline_api_queue_seconds_count 1\n"
	       "# HELP inline_api_runs_total Runs, by how they ended.\n"
	       "# TYPE inline_api_runs_total counter\n"
	       "inline_api_runs_total{api=\"eval\",outcome=\"lost\"} 0\n"
	       "inline_api_runs_total{api=\"eval\",outcome=\"gone\"} 1\n"
	       "inline_api_runs_total{api=\"eval\",outcome=\"refused\"} 0\n"
	       "inline_api_runs_total{api=\"eval\",outcome=\"exit\"} 1\n") !=
		NULL,
	    "a histogram; then a table with its zeros");
	ok(strstr(buf_str(&text), "seconds_bucket{api=\"mcp\"") == NULL,
	    "a histogram that has observed nothing is left out");
	ok(strstr(buf_str(&text),
	       "inline_jobs{kind=\"help\",state=\"queued\"} 3\n") != NULL,
	    "a kind of jobs");
	ok(strstr(buf_str(&text), "kind=\"unknown\"") != NULL, "the last one");
}

/* Whatever a program has written to its file, the text stays readable. */
static void
test_odd_numbers(void)
{
	struct counters *front = counters_open(&config, COUNTERS_OF_FRONT);

	memset(front, 0xff, sizeof(*front));
	buf_reset(&text);
	metrics_add(&text, &m, &config, &health, &store);
	ok(is_readable(), "negative numbers are readable");
	memset(front, 0x7f, sizeof(*front));
	buf_reset(&text);
	metrics_add(&text, &m, &config, &health, &store);
	ok(is_readable(), "so are large ones");
}

int
main(void)
{
	struct err err;
	struct counters *broker;
	struct counters *front;
	struct counters *worker;

	config.state_dir = (char *)(uintptr_t)tap_folder();
	ok(metrics_open(&m, &config, routes, &err) == 0, "opens");
	metrics_add(&text, &m, &config, &health, &store);
	ok(is_readable(), "readable when nothing was counted");
	check_line("inline_broker_up 0");
	check_line("inline_front_up 0");
	count_in_children();
	metrics_request(&m, 0, 200, 1500, 10, 20);
	metrics_request(&m, 0, 299, 99000000, 0, 0);
	metrics_request(&m, 3, 404, 1000, 0, 0);
	metrics_run(&m, API_EVAL, RUN_RESULT, REASON_TIME, 6000000, 2500);
	metrics_run(&m, API_EVAL, RUN_RESULT, REASON_EXIT, 10000, 0);
	metrics_run(&m, API_BASH, RUN_REFUSED, 0, 1, 1);
	metrics_run(&m, API_BASH, RUN_BROKEN, 0, 1, 1);
	metrics_run(&m, API_BASH, RUN_BROKEN, 0, 1, 1);
	metrics_run(&m, API_EVAL, RUN_STOPPED, REASON_EXIT, 1, 1);
	metrics_lease(&m, REFUSAL_NONE);
	metrics_lease(&m, REFUSAL_TIME);
	metrics_queued(&m, 1500);
	metrics_request(&m, 1, 0, 1, 0, 0);
	metrics_begin(&m, 0);
	metrics_change(&m, METRICS_RUNNING, 2);
	metrics_change(&m, METRICS_RUNNING, -1);
	buf_reset(&text);
	broker = counters_open(&config, COUNTERS_OF_BROKER);
	broker->cells[COUNTED_API][COUNTED_IDLE] = 2;
	front = counters_open(&config, COUNTERS_OF_FRONT);
	front->database_up[0][0] = 1;
	front->jobs[0][0] = 3;
	front->job_queue_age_seconds[0][0] = 2500;
	worker = counters_open(&config, COUNTERS_OF_WORKER);
	worker->jobs_total[0][JOB_END_DONE] = 7;
	health.facts.broker = health.facts.front = true;
	health.facts.status.floor = 6;
	health.facts.status.start_failures = 4;
	metrics_add(&text, &m, &config, &health, &store);
	ok(is_readable(), "readable");
	check_line("inline_api_requests_total{route=\"/v1/execute\","
		   "status=\"422\"} 40000");
	check_line("inline_api_requests_total{route=\"/eval\",status=\"200\"} "
		   "1");
	check_line(
	    "inline_api_requests_total{route=\"/eval\",status=\"other\"} "
	    "1");
	check_line("inline_api_requests_total{route=\"other\",status=\"404\"} "
		   "1");
	check_line("inline_api_request_duration_seconds_bucket{"
		   "route=\"/eval\",le=\"0.001\"} 0");
	check_line("inline_api_request_duration_seconds_bucket{"
		   "route=\"/eval\",le=\"0.002\"} 1");
	check_line("inline_api_request_duration_seconds_bucket{"
		   "route=\"/eval\",le=\"60\"} 1");
	check_line("inline_api_request_duration_seconds_bucket{"
		   "route=\"/eval\",le=\"+Inf\"} 2");
	check_line("inline_api_request_duration_seconds_bucket{"
		   "route=\"other\",le=\"0.001\"} 1");
	check_line("inline_api_request_duration_seconds_sum{"
		   "route=\"/eval\"} 99.001500");
	check_line("inline_api_request_duration_seconds_count{"
		   "route=\"/eval\"} 2");
	check_line("inline_api_runs_total{api=\"eval\",outcome=\"time\"} 1");
	check_line("inline_api_runs_total{api=\"eval\",outcome=\"exit\"} 1");
	check_line("inline_api_runs_total{api=\"bash\",outcome=\"refused\"} 1");
	check_line("inline_api_runs_total{api=\"bash\",outcome=\"lost\"} 2");
	check_line("inline_api_runs_total{api=\"eval\",outcome=\"gone\"} 1");
	check_line("inline_api_leases_total{outcome=\"granted\"} 1");
	check_line("inline_api_leases_total{outcome=\"time\"} 1");
	check_line("inline_api_leases_total{outcome=\"busy\"} 0");
	check_line("inline_api_queue_seconds_bucket{le=\"0.001\"} 0");
	check_line("inline_api_queue_seconds_bucket{le=\"0.002\"} 1");
	check_line("inline_api_queue_seconds_bucket{le=\"+Inf\"} 1");
	check_line("inline_api_queue_seconds_sum 0.001500");
	check_line("inline_api_queue_seconds_count 1");
	check_line("inline_api_requests_total{route=\"/v1/execute\","
		   "status=\"499\"} 1");
	check_line("inline_api_run_wait_seconds_count{api=\"eval\"} 2");
	check_line("inline_api_bytes_total{direction=\"in\"} 40010");
	check_line("inline_api_bytes_total{direction=\"out\"} 80020");
	check_line("inline_api_running 1");
	check_line("inline_broker_up 1");
	check_line("inline_front_up 1");
	check_line("inline_cells{class=\"api\",state=\"idle\"} 2");
	check_line("inline_cell_start_failures 4");
	check_line("inline_disk_floor_bytes 6");
	check_line("inline_job_queue_age_seconds 2.500000");
	check_line("inline_jobs_total{kind=\"help\",outcome=\"done\"} 7");
	check_line("inline_jobs_total{kind=\"py\",outcome=\"limit\"} 0");
	check_line("inline_discord_blocked_seconds 0.000000");
	check_line("inline_condition{state=\"well\"} 1");
	check_line("inline_condition{state=\"disk\"} 0");
	check_line("inline_database_up 1");
	check_line("inline_api_stored_bytes 5");
	check_line("inline_api_stored_files 2");
	check_line("inline_api_stored_bytes_max 9");
	test_lines();
	test_odd_numbers();
	test_processes();
	health = (struct health){ 0 };
	buf_reset(&text);
	metrics_add(&text, &m, &config, &health, &store);
	ok(strstr(buf_str(&text), "inline_cells") == NULL &&
		strstr(buf_str(&text), "inline_jobs{") == NULL &&
		strstr(buf_str(&text), "inline_jobs_total{") != NULL,
	    "who does not answer tells nothing; the workers need not answer");
	buf_release(&text);
	return tap_done();
}
