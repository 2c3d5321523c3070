#ifndef PORT_H
#define PORT_H

#include <stdbool.h>

/* Whether nobody listens on this TCP port of 127.0.0.1. */
bool port_is_free(long port);

#endif
