#ifndef SHARED_H
#define SHARED_H

#include <stdint.h>

/*
 * What C and the interpreter share: struct keeper, which lies in the
 * interpreter's memory, and what is in it.  sandbox/cell/python/keeper.py has
 * the same layout, and tests/lint/keeper.t compares the two.
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

#endif
