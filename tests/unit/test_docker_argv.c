/* SPDX-License-Identifier: MIT */
/* The command lines of docker, and what its answers are taken for. */
#include "protocol/counters.h"
#include "tap.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/process.h"
#include "broker/engine.h"
#include "broker/container.h"
#include "broker/workspace.h"

#define IMAGE "python:3.11-alpine"

static struct config settings;

static struct container
example(const char *class)
{
	static char docker[] = "docker";
	static char none[] = "";
	static char library[] = "/lib";
	static char network[] = "bridge";
	static char cells[] = "/state/cells";
	static struct host host;

	settings = (struct config){ .docker_binary = docker,
		.sandbox_runtime = none,
		.preload = none,
		.pip_ca_bundle = none,
		.pip_network = network,
		.api_isolation = none,
		.lib_dir = library,
		.memory = 268435456,
		.pip_memory = 268435456,
		.api_memory = 65536,
		.api_shm = 65536,
		.pids = 64,
		.disk_rate = 1048576,
		.disk_ops = 50,
		.tmp_size = 67108864,
		.quota = 536870912,
		.milli_cpus = 1500 };
	host = (struct host){
		.config = &settings, .cells_dir = cells, .instance = "abc"
	};
	return (struct container){ .host = &host,
		.class = class_find(class),
		.name = "il-abc-1-1",
		.sandbox = "00112233445566778899aabbccddeeff",
		.uid = 2013265921,
		.volumes = { { .device = 3 }, { .device = 4 } },
		.api_packages = { .device = -1 },
		.writable = true };
}

static bool
has(const struct argv *argv, const char *word)
{
	for (size_t i = 0; i < argv->count; i++) {
		size_t len = strcspn(argv->words[i], "=");

		if (strcmp(argv->words[i], word) == 0 ||
		    (word[0] == '-' && strlen(word) == len &&
			memcmp(argv->words[i], word, len) == 0))
			return true;
	}
	return false;
}

/* The option is there, and value comes right after it, or after "=" (at least
 * once). */
static bool
has_pair(const struct argv *argv, const char *word, const char *value)
{
	size_t len = strlen(word);

	for (size_t i = 0; i < argv->count; i++) {
		const char *at = argv->words[i];

		if (strncmp(at, word, len) == 0 &&
		    (at[len] == '=' ? strcmp(at + len + 1, value) == 0 :
			    at[len] == '\0' && argv->words[i + 1] != NULL ?
				      strcmp(argv->words[i + 1], value) == 0 :
				      false))
			return true;
	}
	return false;
}

/* A standby cell mounts no sandbox's volumes, but has the limits for them. */
static void
test_spare(void)
{
	struct container c = example("user");
	auto_argv struct argv argv = { .count = 0 };

	c.standby = true;
	c.sandbox[0] = '\0';
	docker_run_argv(&argv, &c, IMAGE, "");
	ok(has_pair(&argv, "--tmpfs",
	       "/workspace:rw,noexec,nosuid,nodev,size=4k,nr_inodes=4,"
	       "mode=0755"),
	    "a spare cell: no workspace yet");
	ok(has_pair(&argv, "--tmpfs",
	       "/workspace/.site-packages:rw,noexec,nosuid,nodev,size=4k,"
	       "nr_inodes=4,mode=0755"),
	    "nor packages");
	ok(has_pair(&argv, "--device-write-bps", "/dev/loop3:1048576"),
	    "the workspace's device is limited");
	ok(has_pair(&argv, "--device-read-iops", "/dev/loop4:50"),
	    "and that of packages");
	ok(has_pair(&argv, "--cap-drop", "ALL") && !has(&argv, "--cap-add"),
	    "it has no more rights than others");
}

/* The mounter has the rights that it needs, and nothing else that is more than
 * a cell's. */
static void
test_mounter(void)
{
	struct container cell = example("user");
	struct container c = { .host = cell.host,
		.class = &class_mounter,
		.name = "il-abc-1-2",
		.cell = &cell };
	auto_argv struct argv argv = { .count = 0 };
	size_t rights = 0;
	size_t mounts = 0;
	size_t devices = 0;

	docker_run_argv(&argv, &c, "inline-derived:1", "");
	for (size_t i = 0; i < argv.count; i++) {
		rights += strncmp(argv.words[i], "--cap-add=", 10) == 0;
		mounts += strncmp(argv.words[i], "--mount=", 8) == 0;
		devices += strncmp(argv.words[i],
			       "--device-cgroup-rule=", 21) == 0;
	}
	is_int((int64_t)rights, 6, "a mounter has six rights");
	is_int((int64_t)mounts, 1, "its socket, of files");
	ok(has_pair(&argv, "--network", "none") && has(&argv, "--read-only"),
	    "no network, nothing to write to");
	ok(has_pair(&argv, "--cap-drop", "ALL") &&
		has_pair(&argv, "--security-opt", "no-new-privileges") &&
		!has(&argv, "--privileged") && !has(&argv, "--pid"),
	    "no other rights");
	ok(has_pair(&argv, "--security-opt",
	       "seccomp=/lib/seccomp-mounter.json"),
	    "a list of system calls");
	ok(devices == 2 &&
		has_pair(&argv, "--device-cgroup-rule", "b 7:3 rw") &&
		has_pair(&argv, "--device-cgroup-rule", "b 7:4 rw"),
	    "the devices of its cell alone");
	ok(has_pair(&argv, "--entrypoint", "/mounter") &&
		has_pair(&argv, "/mounter", "inline-derived:1"),
	    "a program of ours, in no image of the operator's");
	ok(has_pair(&argv, "--label", "inline.instance=abc"),
	    "the sweep finds it");
}

static void
test_confinement(void)
{
	static const char *const pairs[][2] = {
		{ "--network", "none" },
		{ "--dns-option", "timeout:0" },
		{ "--user", "2013265921:2013265921" },
		{ "--cap-drop", "ALL" },
		{ "--security-opt", "no-new-privileges" },
		{ "--security-opt", "seccomp=/lib/seccomp.json" },
		{ "--pull", "never" },
		{ "--ipc", "private" },
		{ "--log-driver", "none" },
		{ "--memory", "268435456" },
		{ "--memory-swap", "268435456" },
		{ "--cpus", "1.50" },
		{ "--pids-limit", "64" },
		{ "--ulimit", "core=0" },
		{ "--ulimit", "nofile=1024:1024" },
		{ "--ulimit", "msgqueue=0:0" },
		{ "--ulimit", "fsize=536870912:536870912" },
		{ "--name", "il-abc-1-1" },
		{ "--label", "inline.instance=abc" },
		{ "--label", "inline.class=user" },
		{ "--label",
		    "inline.sandbox=00112233445566778899aabbccddeeff" },
		{ "--tmpfs",
		    "/tmp:rw,exec,nosuid,nodev,mode=1777,size=67108864,"
		    "nr_inodes=16384" },
		{ "--mount",
		    "type=bind,\"src=/state/cells/il-abc-1-1/socket\","
		    "dst=/run/inline,readonly=true" },
		{ "--mount",
		    "type=bind,\"src=/state/cells/il-abc-1-1/cell\","
		    "dst=/run/cell,readonly=true" },
		{ "--mount",
		    "type=bind,\"src=/state/cells/il-abc-1-1/passwd\","
		    "dst=/etc/passwd,readonly=true" },
		{ "--mount",
		    "type=bind,\"src=/state/cells/il-abc-1-1/group\","
		    "dst=/etc/group,readonly=true" },
		{ "--tmpfs",
		    "/code:rw,noexec,nosuid,nodev,size=20m,nr_inodes=16,"
		    "mode=0755,uid=2013265921,gid=2013265921" },
		{ "--mount",
		    "type=volume,dst=/workspace,volume-nocopy=true,"
		    "volume-label=inline.instance=abc,volume-opt=type=ext4,"
		    "volume-opt=device=/dev/loop3,"
		    "\"volume-opt=o=nosuid,nodev,discard,noinit_itable\"" },
		{ "--mount",
		    "type=volume,dst=/workspace/.site-packages,"
		    "volume-nocopy=true,volume-label=inline.instance=abc,"
		    "volume-opt=type=ext4,volume-opt=device=/dev/loop4,"
		    "\"volume-opt=o=ro,nosuid,nodev\"" },
		{ "--device-read-bps", "/dev/loop3:1048576" },
		{ "--device-write-bps", "/dev/loop3:1048576" },
		{ "--device-read-iops", "/dev/loop4:50" },
		{ "--device-write-iops", "/dev/loop4:50" },
		{ "--entrypoint", "python3" },
	};
	auto_argv struct argv argv;
	struct container run = example("user");

	docker_run_argv(&argv, &run, IMAGE, "");
	is_str(argv.words[0], "docker", "the program comes first");
	is_str(argv.words[1], "run", "then the command");
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		ok(has_pair(&argv, pairs[i][0], pairs[i][1]), pairs[i][1]);
	ok(has(&argv, "--read-only") && has(&argv, "--rm") &&
		has(&argv, "--detach") && has(&argv, "--init=false"),
	    "the switches");
	ok(!has(&argv, "--privileged") && !has(&argv, "--runtime"),
	    "no runtime unless asked for");
	ok(has_pair(&argv, "python:3.11-alpine", "-s"),
	    "the image is the last word of docker's own");
	is_str(argv.words[argv.count - 1], "/run/inline/cell.sock",
	    "the socket is the last word of the cell's");
	ok(argv.words[argv.count] == NULL, "a NULL ends it");
}

static void
test_no_rate(void)
{
	auto_argv struct argv argv;
	struct container run = example("user");

	settings.disk_rate = 0;
	docker_run_argv(&argv, &run, IMAGE, "");
	ok(!has(&argv, "--device-read-bps") &&
		!has(&argv, "--device-write-bps") &&
		has(&argv, "--device-write-iops"),
	    "a rate of 0 is no limit");
}

static void
test_variants(void)
{
	auto_argv struct argv argv;
	static char runtime[] = "runsc";
	static char bundle[] = "/etc/a,b \"c\".pem";
	struct container run = example("pip");

	settings.sandbox_runtime = runtime;
	settings.pip_ca_bundle = bundle;
	run.writable = false;
	docker_run_argv(&argv, &run, IMAGE, "");
	ok(has_pair(&argv, "--runtime", "runsc"), "a runtime");
	ok(has_pair(&argv, "--network", "bridge"), "a network");
	ok(!has(&argv, "--dns-option"), "its name servers are waited for");
	ok(has_pair(&argv, "--mount",
	       "type=bind,\"src=/etc/a,b \"\"c\"\".pem\",dst=/run/ca.pem,"
	       "readonly=true"),
	    "what would end a CSV field is quoted");
	ok(has_pair(&argv, "--mount",
	       "type=volume,dst=/site,volume-nocopy=true,"
	       "volume-label=inline.instance=abc,volume-opt=type=ext4,"
	       "volume-opt=device=/dev/loop3,"
	       "\"volume-opt=o=ro,nosuid,nodev\""),
	    "a volume that is only read");
	ok(!has(&argv, "--device-write-iops=/dev/loop4:50"), "and no other");
}

static void
test_in_memory(void)
{
	auto_argv struct argv argv;
	static char cell[] = "cell";
	static char preload[] = "json,os.path";
	struct container run = example("api");

	settings.api_isolation = cell;
	settings.preload = preload;
	run.imports = true;
	docker_run_argv(&argv, &run, IMAGE, "mine");
	is_str(argv.words[argv.count - 1], "api", "cell.py is told its class");
	ok(has_pair(&argv, "--env", "IL_CELL_ISOLATION=1"),
	    "and how to isolate");
	ok(has_pair(&argv, "--env", "IL_CELL_PRELOAD=json,os.path"),
	    "and what to import");
	ok(has_pair(&argv, "--security-opt", "apparmor=mine"),
	    "and gets the profile of AppArmor that is set");
	ok(has_pair(&argv, "--sysctl", "net.ipv4.tcp_max_tw_buckets=0"),
	    "a setting of the kernel");
	ok(has_pair(&argv, "--tmpfs",
	       "/snekbin:rw,noexec,nosuid,nodev,size=64k,nr_inodes=32,"
	       "mode=0755,uid=2013265921,gid=2013265921"),
	    "names for the interpreter");
	ok(has_pair(&argv, "--tmpfs",
	       "/snekbox:ro,noexec,nosuid,nodev,size=4k,nr_inodes=16,"
	       "mode=0755,uid=2013265921,gid=2013265921"),
	    "a place for packages");
	ok(has_pair(&argv, "--shm-size", "4096"), "shared memory");
	ok(has_pair(&argv, "--ulimit", "fsize=-1:-1"),
	    "files as long as they like");
	ok(has_pair(&argv, "--tmpfs",
	       "/home:rw,exec,nosuid,nodev,mode=0755,uid=2013265921,"
	       "gid=2013265921,size=53248,nr_inodes=1024"),
	    "a folder of the cell's own");
	for (size_t i = 0; i < argv.count; i++) {
		if (strncmp(argv.words[i], "--tmpfs=/code", 13) == 0)
			ok(false, "no folder for code");
		if (strstr(argv.words[i], "type=volume") != NULL)
			ok(false, "no volume");
	}
}

/* Only cells whose runs have namespaces cover /proc themselves. */
static void
test_masks(void)
{
	static const char word[] = "--security-opt=systempaths=unconfined";
	const struct cell_class *class;

	for (size_t i = 0; (class = class_at(i)) != NULL; i++) {
		is_str(class->name, counted_class_words[i], "is counted so");
		struct container run = example(class->name);
		auto_argv struct argv open = { .count = 0 };
		auto_argv struct argv masked = { .count = 0 };

		docker_run_argv(&open, &run, IMAGE, "");
		run.masked = true;
		docker_run_argv(&masked, &run, IMAGE, "");
		ok(has(&open, word) == (strcmp(class->name, "api") == 0) &&
			!has(&masked, word),
		    "the engine's masks");
	}
}

/* The device that all cells of a version mount: none of its rates, which are
 * one cell's, and never to be written to. */
static void
test_api_packages(void)
{
	static const char mount[] =
	    "type=volume,dst=/snekbox/user_base/lib/python3.11/site-packages,"
	    "volume-nocopy=true,volume-label=inline.instance=abc,"
	    "volume-opt=type=ext4,volume-opt=device=/dev/loop0,"
	    "\"volume-opt=o=ro,nosuid,nodev\"";
	static const struct {
		const char *interpreter;
		int device;
		bool there;
	} rows[] = {
		{ "3.11", 0, true },
		{ "3.11-numpy", 0, true },
		{ "3.11", -1, false },
		{ "latest", 0, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_argv struct argv argv;
		struct container run = example("session");

		(void)snprintf(run.interpreter.name,
		    sizeof(run.interpreter.name), "%s", rows[i].interpreter);
		run.api_packages.device = rows[i].device;
		docker_run_argv(&argv, &run, IMAGE, "");
		ok(has_pair(&argv, "--mount", mount) == rows[i].there,
		    rows[i].interpreter);
		ok(!has(&argv, "--device-read-bps"), "without a rate");
		for (size_t j = 0; j < argv.count && !rows[i].there; j++)
			if (strstr(argv.words[j], "type=volume") != NULL)
				ok(false, "no volume");
	}
}

/* The folders that a run may fill leave memory to work in. */
static void
test_folders(void)
{
	static const int64_t memories[][5] = {
		/* MiB of memory, of /tmp, /dev/shm, /workspace, /home */
		{ 64, 16, 8, 32, 48 },
		{ 70, 17, 13, 30, 48 },
		{ 256, 64, 40, 120, 48 },
		{ 4096, 64, 40, 3480, 48 },
	};
	struct class_folder folders[CLASS_FOLDERS];

	for (size_t i = 0; i < sizeof(memories) / sizeof(memories[0]); i++) {
		struct config config = { .api_memory = memories[i][0] << 20,
			.api_shm = 40 << 20,
			.tmp_size = 1 << 20 };
		int64_t room = config.api_memory - config.api_memory / 8;
		size_t count = class_folders(class_find("api"), &config,
		    folders);

		is_int((int64_t)count, 4, "four folders");
		for (size_t j = 0; j < count; j++)
			is_int(folders[j].size >> 20, memories[i][j + 1],
			    folders[j].path);
		ok(folders[0].size + folders[1].size + folders[2].size <= room,
		    "what is for /workspace fits");
		ok(folders[1].size + folders[3].size <= room,
		    "what is for /home fits");
		ok(class_has_folder(class_find("api"), &config, "/home") &&
			!class_has_folder(class_find("session"), &config,
			    "/home") &&
			!class_has_folder(class_find("api"), &config, "/etc"),
		    "a session has no /home");
		is_int((int64_t)class_folders(class_find("user"), &config,
			   folders),
		    2, "a user's cell has neither");
		is_int(folders[0].size, 1 << 20, "but IL_TUNE_TMP");
	}
}

static void
test_small(void)
{
	auto_argv struct argv remove;
	auto_argv struct argv list;

	docker_argv(&remove, "podman", DOCKER_REMOVE, "il-1");
	is_str(remove.words[0], "podman", "the configured program is called");
	ok(has(&remove, "--force") && has(&remove, "--volumes"),
	    "removing kills, and takes the volumes along");
	docker_argv(&list, "docker", DOCKER_CELLS, "abc");
	is_str(list.words[list.count - 1], "label=inline.instance=abc",
	    "only containers of this instance are listed");
}

static enum docker_failure
classify(enum process_outcome outcome, int code, const char *text)
{
	struct process_result result = { .outcome = outcome, .code = code };
	enum docker_failure failure;

	buf_init(&result.out, 4096);
	buf_init(&result.err, 4096);
	buf_adds(&result.err, text);
	failure = docker_classify(&result);
	process_result_release(&result);
	return failure;
}

static void
test_classify(void)
{
	is_int(classify(PROCESS_EXITED, 1,
		   "Cannot connect to the Docker daemon at unix:///x. Is the "
		   "docker daemon running?"),
	    DOCKER_ENGINE, "an engine that is away");
	is_int(classify(PROCESS_TIMED_OUT, 9, ""), DOCKER_ENGINE, "a timeout");
	is_int(classify(PROCESS_SIGNALED, 9, ""), DOCKER_ENGINE, "a death");
	is_int(classify(PROCESS_EXITED, 1, "Error: No such image: x"),
	    DOCKER_IMAGE, "an image that is away");
	is_int(classify(PROCESS_EXITED, 125,
		   "docker: Error response from daemon: error while mounting "
		   "volume '/var/lib/docker/volumes/x': failed to mount local "
		   "volume: mount /dev/loop0: structure needs cleaning."),
	    DOCKER_MOUNT, "an image that cannot be mounted");
	is_int(classify(PROCESS_EXITED, 1,
		   "Error response from daemon: No such container: il-1"),
	    DOCKER_ABSENT, "a container that is gone");
	is_int(classify(PROCESS_EXITED, 125, "the moon is full"), DOCKER_OTHER,
	    "anything else");
}

static void
test_ids(void)
{
	static const char two[] = "0123456789ab\nfedcba9876543210\n";
	char id[128];
	size_t pos = 0;

	ok(docker_next(two, &pos, false, id), "a first id");
	is_str(id, "0123456789ab", "which is this");
	ok(docker_next(two, &pos, false, id), "a second");
	is_str(id, "fedcba9876543210", "which is that");
	ok(!docker_next(two, &pos, false, id), "and no third");
	for (size_t i = 0; i < 3; i++) {
		static const char *const bad[] = { "--all\n", "0123\n",
			"0123456789ab; rm\n" };

		pos = 0;
		ok(!docker_next(bad[i], &pos, false, id),
		    "what is no id is none");
	}
}

static void
test_sizes(void)
{
	struct volume_size size = { .bytes = 256 << 20, .files = 10000 };

	ok(volume_inodes(&size) > size.files, "inodes for more than the files");
	ok(volume_total_bytes(&size) > size.bytes + 10000 * 256 + (4 << 20),
	    "room for tables and journal");
	ok(volume_total_bytes(&size) < size.bytes + (24 << 20),
	    "and not much more");
	is_int(volume_total_bytes(&size) % 4096, 0, "whole blocks");
}

static void
test_derive(void)
{
	static const char *const bad[] = { "", "\n", "<none>:<none>\n",
		"inline-derived:x\n", "inline-python:3.11\n",
		"inline-derived:1 inline-derived:2\n" };
	static const char two[] = "inline-derived:0a-1\ninline-derived:2\n";
	auto_argv struct argv argv;
	char name[128];
	size_t pos = 0;

	docker_argv_derive(&argv, "docker", "il-abc-derive", "abc", "python:3",
	    "pass");
	ok(has_pair(&argv, "--network", "none") &&
		has_pair(&argv, "--cap-drop", "ALL") &&
		has_pair(&argv, "--security-opt", "no-new-privileges") &&
		has_pair(&argv, "--pull", "never"),
	    "what derives an image has root and nothing else");
	ok(!has(&argv, "--mount") && !has(&argv, "--volume"),
	    "and sees nothing of the host's");
	ok(has_pair(&argv, "--label", "inline.instance=abc"),
	    "the sweep finds it");
	ok(has_pair(&argv, "python:3", "-I"), "no module of anyone's is met");
	ok(docker_next(two, &pos, true, name), "a first name");
	is_str(name, "inline-derived:0a-1", "it is whole");
	ok(docker_next(two, &pos, true, name), "a second");
	ok(!docker_next(two, &pos, true, name), "and no third");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		pos = 0;
		ok(!docker_next(bad[i], &pos, true, name),
		    "what is no such name is none");
	}
}

int
main(void)
{
	test_derive();
	test_confinement();
	test_spare();
	test_mounter();
	test_no_rate();
	test_variants();
	test_in_memory();
	test_masks();
	test_api_packages();
	test_folders();
	test_small();
	test_classify();
	test_ids();
	test_sizes();
	return tap_done();
}
