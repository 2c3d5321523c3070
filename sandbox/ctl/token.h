#ifndef TOKEN_H
#define TOKEN_H

struct ctl;

/* ilctl token: make, list and revoke the bearer tokens of the HTTP APIs.  A
 * sub-command like those in ctl.h; it needs no configuration, the file is named
 * with -f. */
int ctl_token(struct ctl *ctl, int argc, char **argv);

#endif
