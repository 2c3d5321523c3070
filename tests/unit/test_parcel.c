/* SPDX-License-Identifier: MIT */
/* Heads of parcels, and il-node's answers. */
#include "move/parcel.h"

#include "tap.h"

static bool
is_good(const char *node, size_t len)
{
	struct parcel_head head = { .word = PARCEL_WORD };

	memcpy(head.node, node, len);
	return parcel_head_is_good(&head);
}

int
main(void)
{
	char full[PARCEL_NODE_MAX + 1];

	memset(full, 'x', sizeof(full));
	ok(is_good("", 0) && is_good("b", 1), "this host, and another one");
	ok(is_good(full, PARCEL_NODE_MAX), "a long name");
	ok(!is_good(full, sizeof(full)), "a name without an end");
	ok(!is_good("a b", 3) && !is_good("a\nb", 3) && !is_good("\x7f", 1),
	    "no name has blanks or control characters");
	is_int(arrival_status(ERR_BUSY), 503, "a locked database");
	is_int(arrival_code(503), ERR_UNAVAILABLE, "it stops the sender");
	is_int(arrival_code(429), ERR_BUSY, "nginx is busy");
	is_int(arrival_status(ERR_INPUT), 400, "a wrong parcel");
	is_int(arrival_code(404), ERR_INPUT, "no such request");
	return tap_done();
}
