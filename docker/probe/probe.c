/* probe PORT PATH: exit 0 when http://127.0.0.1:PORT/PATH answers 200 within two seconds.
 *
 * The health check of every image. It is linked statically and needs no shell, no curl and no
 * Python, so it works in images that have none of them, and costs next to nothing. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const struct timeval patience = {2, 0};

static int fail(const char *what) {
    perror(what);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: probe PORT PATH\n");
        return 2;
    }
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((unsigned short)atoi(argv[1])),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (server < 0) return fail("socket");
    setsockopt(server, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(server, (struct sockaddr *)&address, sizeof address) < 0) return fail("connect");
    if (dprintf(server, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", argv[2]) < 0)
        return fail("write");
    char line[16] = "";
    size_t got = 0;
    while (got < sizeof "HTTP/1.1 200" - 1) {
        ssize_t n = read(server, line + got, sizeof "HTTP/1.1 200" - 1 - got);
        if (n <= 0) return fail("read");
        got += (size_t)n;
    }
    if (strcmp(line, "HTTP/1.1 200") != 0 && strcmp(line, "HTTP/1.0 200") != 0) {
        fprintf(stderr, "probe: %s answers %s\n", argv[2], line);
        return 1;
    }
    return 0;
}
