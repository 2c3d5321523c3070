/* SPDX-License-Identifier: MIT */
/* Histograms and families, as they are written and as they are passed on. */
#include "sandbox/base/exposition.h"

#include "sandbox/base/buf.h"
#include "sandbox/base/cleanup.h"
#include "tap.h"

static struct buf text = BUF_INIT(1 << 16);

static bool
passes(const char *line)
{
	buf_reset(&text);
	return exposition_pass(&text, line) &&
	    strcmp(buf_str(&text), line) == 0;
}

/* What we have written. */
static bool
passes_again(void)
{
	auto_free char *line = xstrdup(buf_str(&text));

	return passes(line);
}

static void
test_histogram(void)
{
	static struct histogram h;

	exposition_histogram(&text, "inline_a_seconds", "", &h);
	is_str(buf_str(&text), "", "nothing was observed: nothing is said");
	histogram_observe(&h, 1000);
	histogram_observe(&h, 1001);
	histogram_observe(&h, 61000000);
	histogram_observe(&h, -5);
	exposition_histogram(&text, "inline_a_seconds", "", &h);
	is_str(buf_str(&text),
	    "inline_a_seconds_bucket{le=\"0.001\"} 2\n"
	    "inline_a_seconds_bucket{le=\"0.002\"} 3\n"
	    "inline_a_seconds_bucket{le=\"0.005\"} 3\n"
	    "inline_a_seconds_bucket{le=\"0.01\"} 3\n"
	    "inline_a_seconds_bucket{le=\"0.02\"} 3\n"
	    "inline_a_seconds_bucket{le=\"0.05\"} 3\n"
	    "inline_a_seconds_bucket{le=\"0.1\"} 3\n"
	    "inline_a_seconds_bucket{le=\"0.2\"} 3\n"
	    "inline_a_seconds_bucket{le=\"0.5\"} 3\n"
	    "inline_a_seconds_bucket{le=\"1\"} 3\n"
	    "inline_a_seconds_bucket{le=\"2\"} 3\n"
	    "inline_a_seconds_bucket{le=\"5\"} 3\n"
	    "inline_a_seconds_bucket{le=\"20\"} 3\n"
	    "inline_a_seconds_bucket{le=\"60\"} 3\n"
	    "inline_a_seconds_bucket{le=\"+Inf\"} 4\n"
	    "inline_a_seconds_sum 61.002001\n"
	    "inline_a_seconds_count 4\n",
	    "an end counts as within, and each bucket holds those before it");
	buf_reset(&text);
	exposition_histogram(&text, "inline_a_seconds", "k=\"v\"", &h);
	ok(strstr(buf_str(&text),
	       "inline_a_seconds_bucket{k=\"v\",le=\"+Inf\"} 4\n"
	       "inline_a_seconds_sum{k=\"v\"} 61.002001\n"
	       "inline_a_seconds_count{k=\"v\"} 4\n") != NULL,
	    "with a label");
	ok(passes_again(), "what we write passes");
}

static void
test_lines(void)
{
	buf_reset(&text);
	exposition_gauge(&text, "inline_b", "Of b.", -3);
	exposition_number(&text, "inline_d", "a=\"1\",b=\"2\"", 4);
	exposition_seconds(&text, "inline_c_seconds", 1500);
	is_str(buf_str(&text),
	    "# HELP inline_b Of b.\n# TYPE inline_b gauge\ninline_b -3\n"
	    "inline_d{a=\"1\",b=\"2\"} 4\ninline_c_seconds 0.001500\n",
	    "a gauge, a number and seconds");
	ok(passes_again(), "they pass");
}

/* One bad line would cost Prometheus all of them. */
static void
test_bad_lines(void)
{
	static const char *const bad[] = { "inline_a\n", "inline_a \n",
		"inline_a 1", "inline_a 1 2\n", "inline_a x\n", "other_a 1\n",
		"inline_a{ 1\n", "inline_a{} 1\n", "inline_a{k} 1\n",
		"inline_a{k=v} 1\n", "inline_a{k=\"v\" 1\n",
		"inline_a{k=\"v\",} 1\n", "inline_a{=\"v\"} 1\n",
		"inline_a{k=\"\\\"\"} 1\n", "inline_a{k=\"\xc3\xa4\"} 1\n",
		"inline_a{k=\"v\"}1\n", "# inline_a\n", "\n", "# HELP a b\n",
		"inline_A 1\n", "inline_a\t1\n" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		buf_reset(&text);
		(void)tap_point(!exposition_pass(&text, bad[i]) &&
			text.len == 0,
		    bad[i][0] == '\n' ? "an empty line" : "a bad line",
		    __FILE__, __LINE__);
	}
	buf_reset(&text);
	ok(!exposition_pass(&text, "inline_a 1\nx\ninline_b 2\n"),
	    "it says that one was left out");
	is_str(buf_str(&text), "inline_a 1\ninline_b 2\n", "the others stay");
}

int
main(void)
{
	test_histogram();
	test_lines();
	test_bad_lines();
	buf_release(&text);
	return tap_done();
}
