#ifndef KEEPER_H
#define KEEPER_H

#include <stddef.h>
#include <stdint.h>

/*
 * The keeper of an api cell: makes jails, gives each lease to one, holds its
 * run to its limits and says how it ended.
 *
 * It is called by the interpreter that all runs are clones of
 * (sandbox/cell/python/keeper.py), as C, because whatever the interpreter itself would
 * do here, the clone and its parent would pay for again with a copy of each
 * page that is written to.  It calls nothing but the C library of whatever
 * image it is loaded in.
 *
 * A run's process is there before its lease.  It takes the lease, reads the
 * request and becomes the run (sandbox/cell/python/api.py); what the keeper must know
 * of that is told in a few numbers, struct keeper_plan.  No byte of a client's
 * is looked at here: output passes through memory that no clone gets, standard
 * input goes from file to pipe within the kernel, and files that a run leaves
 * are sent by a child.
 */

enum keeper_role {
	KEEPER_FAILED = -1, /* keeper.why says what */
	KEEPER_DONE = 0,
	/* in a child, which goes on in the interpreter */
	KEEPER_RUN = 1,	    /* confined, has its lease: reads the request */
	KEEPER_HARVEST = 2, /* not confined; sends files and the result */
	KEEPER_USUAL = 3,   /* is the run already, see keeper_usual */
};

/* A memory file system that each jail gets anew. */
struct keeper_mount {
	const char *path;
	const char *options;
	uint64_t flags;
};

/* What a run's process tells before it becomes the run; the limits are those of
 * its request.  Everything is checked when it comes. */
struct keeper_plan {
	uint64_t wall_ms;
	uint64_t output_max; /* bytes of both streams, with drains of each */
	uint64_t drains;     /* 1: output over it is dropped, else it ends */
	uint64_t folder;     /* whose files count: number in KEEPER_FOLDERS */
	uint64_t input;	     /* bytes in keeper.file: rest of standard input, */
	uint64_t notes;	     /* and behind it what harvest.py must know */
	uint64_t files;	     /* to be sent at most; 0: none are looked for */
	uint64_t bytes;
	uint64_t total;
	uint64_t how;
	uint64_t ms;
};

#define KEEPER_FOLDERS "/home", "/workspace"
#define KEEPER_FOLDER_COUNT 2
#define KEEPER_WALL_MAX_MS 86400000
#define KEEPER_PACKETS 4 /* of a usual request, with GO */
#define KEEPER_WORDS_MAX 65536
#define KEEPER_RESULT_MAX 256
#define KEEPER_WHY_MAX 128
#define KEEPER_ID 65532 /* uid and gid of a run, as it sees itself */

/*
 * A usual request: `python -c CODE ...`, an environment, limits and a little
 * standard input, all of it there.  The process has been made its run: the
 * keeper holds it to its limits, and of descriptors it has standard streams.
 */
struct keeper_usual {
	uint64_t words_len;
	uint64_t env_len;
	char words[KEEPER_WORDS_MAX]; /* a NUL after each */
	char env[KEEPER_WORDS_MAX];   /* NAME=VALUE, a NUL after each */
};

extern struct keeper_usual keeper_usual;

struct keeper_own;

/* The caller's storage; keeper.py has the same structure.  Descriptors are
 * borrowed where nothing else is said, and -1 where there is none. */
struct keeper {
	/* set by the caller, for good */
	const struct keeper_mount *mounts;
	uint64_t mount_count;
	const void *filter; /* struct sock_fprog: the calls left to a run */
	/* the interpreter's, around each fork() */
	void (*before_fork)(void);
	void (*in_parent)(void);
	void (*in_child)(void);
	uint32_t uid; /* who we are outside of our user namespace */
	uint32_t gid;
	int32_t control; /* the connection to the broker */
	int32_t ooms;	 /* the file that counts the memory limit's kills */
	int32_t proc;	 /* O_PATH of a /proc that is covered by now */
	int32_t pids;	 /* our pid namespace, by keeper_init() */
	uint32_t counts; /* 1: processes are counted in user namespaces */
	/* of the jail of the moment, for the run's process */
	int32_t channel; /* to the keeper: one struct keeper_plan goes in */
	int32_t in;	 /* what will be its standard streams */
	int32_t out;
	int32_t err;
	int32_t feed;  /* the other end of in, does not block */
	int32_t file;  /* empty: for standard input that feed cannot take */
	int32_t lease; /* its own, and what was received on it */
	uint32_t packet_count;
	const char *packets[KEEPER_PACKETS];
	uint64_t packet_len[KEEPER_PACKETS];
	/* of the run that has ended, for who sends its files; lease, too */
	int32_t folder;
	struct keeper_plan plan;
	uint32_t result_len;
	uint8_t result[KEEPER_RESULT_MAX]; /* beginning of FRAME_RESULT */
	char why[KEEPER_WHY_MAX]; /* "mount 13": what failed, and its errno */
	struct keeper_own *own;
};

/* sizeof(struct keeper): a caller with another one is of another version. */
size_t keeper_size(void);

/* In a new user namespace: be KEEPER_ID.  DONE or FAILED. */
int keeper_map_user(struct keeper *k);

/* Begin, in the process that is to be the keeper; of all capabilities it keeps
 * the one that makes jails, over what it has made itself.  DONE or FAILED. */
int keeper_init(struct keeper *k);

/* Make a jail and the process of its next run.  DONE in the keeper; FAILED:
 * there is none.  In that process it returns when the lease is there and the
 * beginning of its request, and ends the process when there will be none:
 * USUAL, or RUN: the interpreter must go on with what was received.  The
 * connection to the broker is closed then, and the lease is the caller's. */
int keeper_enclose(struct keeper *k);

/* Serve leases, one jail each; the first is there.  Says IDLE to the broker
 * when the next one is.  Ends the process when the broker is gone.  Returns
 * FAILED when no jail can be made any more; in a child as keeper_enclose(), or
 * HARVEST. */
int keeper_keep(struct keeper *k);

/* Nothing of the jail is left. */
void keeper_release(struct keeper *k);

/* Give up all capabilities, and all system calls that the filter refuses; with
 * goes_first, be the one that goes when memory runs out.  DONE or FAILED. */
int keeper_surrender(struct keeper *k, int goes_first);

#endif
