/* SPDX-License-Identifier: MIT */
/* Histograms and families, as they are written. */
#include "base/exposition.h"

#include "base/buf.h"
#include "tap.h"

#define HEAD \
	"# HELP inline_a_seconds Of a.\n" \
	"# TYPE inline_a_seconds histogram\n"

static struct buf text = BUF_INIT(1 << 16);

static void
test_histogram(void)
{
	static const char *const values[] = { "v" };
	const struct exposition_label label = { "k", values, 1 };
	static struct histogram h;

	exposition_histograms(&text, "inline_a_seconds", "Of a.", NULL, &h);
	is_str(buf_str(&text), HEAD, "nothing was observed: nothing is said");
	histogram_observe(&h, 1000);
	histogram_observe(&h, 1001);
	histogram_observe(&h, 61000000);
	histogram_observe(&h, -5);
	buf_reset(&text);
	exposition_histograms(&text, "inline_a_seconds", "Of a.", NULL, &h);
	is_str(buf_str(&text),
	    HEAD "inline_a_seconds_bucket{le=\"0.001\"} 2\n"
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
	exposition_histograms(&text, "inline_a_seconds", "Of a.", &label, &h);
	ok(strstr(buf_str(&text),
	       "inline_a_seconds_bucket{k=\"v\",le=\"+Inf\"} 4\n"
	       "inline_a_seconds_sum{k=\"v\"} 61.002001\n"
	       "inline_a_seconds_count{k=\"v\"} 4\n") != NULL,
	    "with a label");
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
}

static void
test_table(void)
{
	static const char *const states[] = { "on", NULL, "off" };
	static const char *const colours[] = { "red", "blue" };
	const struct exposition_label state = { "state", states, 3 };
	const struct exposition_label colour = { "colour", colours, 2 };
	const _Atomic int64_t numbers[2][3] = { { 1, 2, 3 }, { 4, 5, 0 } };

	buf_reset(&text);
	exposition_table(&text, "inline_e", "gauge", "Of e.", NULL, &state,
	    numbers[0]);
	is_str(buf_str(&text),
	    "# HELP inline_e Of e.\n# TYPE inline_e gauge\n"
	    "inline_e{state=\"on\"} 1\ninline_e{state=\"off\"} 3\n",
	    "one label; a column without a name is left out");
	buf_reset(&text);
	exposition_table(&text, "inline_f_total", "counter", "Of f.", &colour,
	    &state, &numbers[0][0]);
	is_str(buf_str(&text),
	    "# HELP inline_f_total Of f.\n# TYPE inline_f_total counter\n"
	    "inline_f_total{colour=\"red\",state=\"on\"} 1\n"
	    "inline_f_total{colour=\"red\",state=\"off\"} 3\n"
	    "inline_f_total{colour=\"blue\",state=\"on\"} 4\n"
	    "inline_f_total{colour=\"blue\",state=\"off\"} 0\n",
	    "two labels, and zeros");
}

/* Half a line would cost Prometheus all of them. */
static void
test_no_room(void)
{
	auto_buf struct buf small = BUF_INIT(34);

	exposition_number(&small, "inline_long_name_of_g", "", 1);
	exposition_number(&small, "inline_g", "", 1);
	is_str(buf_str(&small), "inline_long_name_of_g 1\n",
	    "a line without room is left out whole");
}

int
main(void)
{
	test_histogram();
	test_lines();
	test_table();
	test_no_room();
	buf_release(&text);
	return tap_done();
}
