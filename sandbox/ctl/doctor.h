/* SPDX-License-Identifier: MIT */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/basics.h"
#include "protocol/condition.h"
#include "store/job.h"

struct buf;
struct config;

struct doctor {
	const struct config *config;
	struct condition_facts facts;
	struct err refusals[3];	  /* of il-fcgi, il-api and il-sandboxd */
	struct job_counts counts; /* zero where the database does not open */
	json_t *lines;		  /* of --json; NULL: lines are printed */
	bool nothing;		  /* no program of ours runs here */
	int failed;
};

/* The rows of doctor.def. */
enum finding {
#define FINDING(name, ...) FOUND_##name,
#include "ctl/doctor.def"
	FINDINGS,
};

/* Print a row's line, or add it for --json, with these texts as its values;
 * count it if it is a FAIL. */
#define FINDING_VALUES 4
void doctor_add(struct doctor *d, enum finding what,
    const char *const values[FINDING_VALUES]);
#define doctor_say(d, what, ...) \
	doctor_add(d, what, (const char *const[FINDING_VALUES]){ __VA_ARGS__ })
/* A number as such a value. */
struct text_short doctor_number(int64_t n);
/* Append a text with the values in the places of @1 to @4; NULL is "". */
void doctor_fill(struct buf *out, const char *text,
    const char *const values[FINDING_VALUES]);

/* doctor_host.c: the machine. */
void doctor_engine(struct doctor *d);
void doctor_images(struct doctor *d);
void doctor_loop(struct doctor *d);
void doctor_nginx(struct doctor *d);
void doctor_disk(struct doctor *d);
void doctor_isolation(struct doctor *d);
/* selftest.c: Discord, and its clock beside ours; nginx. */
void doctor_discord(struct doctor *d);
void doctor_http(struct doctor *d);
/* register.c: what Discord knows of the application, where the bot's token is
 * there. */
void doctor_application(struct doctor *d);

/* ---- nginx ---- */

/* Connections that the limits in nginx/ assume of each process of nginx. */
#define NGINX_CONNECTIONS_MIN 4096

/* The connections that nginx's configuration lets it take. */
struct nginx_room {
	int64_t connections; /* worker_connections */
	int64_t files;	     /* worker_rlimit_nofile; 0: not said */
	bool ours;	     /* it has what we install in lib_dir */
	bool suffices;	     /* that is enough */
};

/* dump: as `nginx -T` prints it, which has found no fault. */
void nginx_room_read(struct nginx_room *room, const char *dump,
    const char *lib_dir);

/* ---- isolation ---- */

/*
 * The reason why runs of the HTTP APIs cannot have namespaces of their own on
 * this host, or lack something in them.  It follows from the step at which a
 * cell failed, and from what the kernel says.
 */
enum isolation_host {
	HOST_NO_NAMESPACES = 1 << 0, /* the kernel has no user namespaces */
	HOST_NOT_ALLOWED = 1 << 1,   /* kernel.unprivileged_userns_clone is 0 */
	HOST_NONE_AT_MOST = 1 << 2,  /* user.max_user_namespaces is 0 */
	/* kernel.apparmor_restrict_unprivileged_userns is 1 */
	HOST_RESTRICTED = 1 << 3,
	HOST_APPARMOR = 1 << 4, /* it is on */
	HOST_SELINUX = 1 << 5,	/* it enforces */
	HOST_LOADED = 1 << 6,	/* our profile (base/process.h) is */
};

struct isolation_facts {
	unsigned int host;   /* enum isolation_host, or-ed */
	const char *profile; /* IL_TUNE_API_APPARMOR */
	const char *runtime; /* IL_TUNE_RUNTIME */
	/* The error of the same steps outside of containers, for a process
	 * without privileges; "": they succeed. */
	char outside[64];
};

/* Measure the host; the steps are tried in a child. */
void isolation_measure(struct isolation_facts *facts);
/* Append the cause, and what mends it: a command or a setting, or nothing where
 * none is known.  reason: "asked for", or "step: ERROR" as the cell told it,
 * with the AppArmor profile that it was under, if any, ", profile NAME".
 * Pure. */
#define VERDICT_MAX 4096
void isolation_judge(const struct isolation_facts *facts, const char *reason,
    struct buf *cause, struct buf *mend);

#endif
