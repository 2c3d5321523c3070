/* SPDX-License-Identifier: MIT */
/*
 * The least that a FastCGI program costs: it answers a constant.  With a FILE
 * as argument it reads the request's body and answers what is in the file.
 * `make bench` measures il-fcgi and il-api beside it, behind the same nginx.
 * It listens on descriptor 0, as such programs do.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <fcgiapp.h>

#define PIECE 65536

static const char constant[] = "{\"type\":1}";

struct answer {
	char head[128];
	const char *data;
	size_t len;
};

static int
answer_open(struct answer *answer, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return -1;
	answer->len = (size_t)st.st_size;
	answer->data = mmap(NULL, answer->len, PROT_READ,
	    MAP_PRIVATE | MAP_POPULATE, fd, 0);
	return answer->data == MAP_FAILED ? -1 : 0;
}

int
main(int argc, char **argv)
{
	static char body[PIECE];
	struct answer answer = { "", constant, sizeof(constant) - 1 };
	FCGX_Request request;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc > 1 && answer_open(&answer, argv[1]) != 0)
		return 1;
	(void)snprintf(answer.head, sizeof(answer.head),
	    "Status: 200 OK\r\nContent-Type: application/json\r\n"
	    "Content-Length: %zu\r\n\r\n",
	    answer.len);
	if (FCGX_Init() != 0 || FCGX_InitRequest(&request, 0, 0) != 0)
		return 1;
	while (FCGX_Accept_r(&request) == 0) {
		while (argc > 1 && FCGX_GetStr(body, PIECE, request.in) > 0)
			;
		(void)FCGX_PutStr(answer.head, (int)strlen(answer.head),
		    request.out);
		(void)FCGX_PutStr(answer.data, (int)answer.len, request.out);
		FCGX_Finish_r(&request);
	}
	return 0;
}
