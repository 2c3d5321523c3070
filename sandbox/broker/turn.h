#ifndef TURN_H
#define TURN_H

struct pool;

/* Serve and start whatever can be; end what is idle too long, or too many. */
void turn_take(struct pool *pool);

#endif
