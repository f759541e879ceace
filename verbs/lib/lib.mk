# lib.mk - build/liburdma.so, the preloadable libibverbs and librdmacm. The main
# Makefile includes this; rdma-core's headers come from libibverbs-dev and
# librdmacm-dev.
LIB_FOLDERS := verbs/lib verbs/lib/pages verbs/lib/pages/kernel verbs/lib/session verbs/lib/datapath verbs/lib/device verbs/lib/memory verbs/lib/datagram verbs/lib/cm verbs/lib/rsockets verbs/lib/rsockets/datagrams verbs/lib/interpose
LIB_SOURCES := $(wildcard $(LIB_FOLDERS:%=%/*.c))
LIB_HEADERS := $(wildcard $(LIB_FOLDERS:%=%/*.h) verbs/abi/*.h)
LIB_OBJECTS := $(LIB_SOURCES:%.c=build/%.o)
LIB_NAMES := libibverbs.so.1 libibverbs.so librdmacm.so.1 librdmacm.so
# -fexceptions: the unwind tables contain the cleanup handlers (rsockets.h).
LIB_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -fexceptions -fvisibility=hidden -Wall -Wextra -Werror

build/verbs/lib/%.o: verbs/lib/%.c $(LIB_HEADERS)
	@mkdir -p $(@D)
	@echo CC $<; $(CC) $(LIB_CFLAGS) $(CFLAGS) -c $< -o $@

# Symbols of libibverbs that rdma-core's drivers need; programs may be linked with these drivers.
LIB_PRIVATE := build/verbs/lib/interpose/private.ld

$(LIB_PRIVATE): verbs/lib/interpose/private.sh $(wildcard /usr/include/infiniband/verbs.h)
	@mkdir -p $(@D)
	verbs/lib/interpose/private.sh $$($(CC) -print-file-name=libibverbs.so) >$@.new && mv $@.new $@

LIB_LDFLAGS := -shared -Wl,-soname,liburdma.so -Wl,--version-script=verbs/lib/liburdma.map -Wl,-z,now -Wl,-z,relro \
	-Wl,-z,nodelete

# -z nodelete: fork handlers and interposed calls must outlive a dlclose. -z now: a fork handler may call a function
# that was never called before.
build/liburdma.so: $(LIB_OBJECTS) $(LIB_PRIVATE) verbs/lib/liburdma.map
	$(CC) $(LIB_LDFLAGS) -Wl,--no-undefined $(LDFLAGS) -o $@ $(LIB_OBJECTS) $(LIB_PRIVATE) -lpthread -ldl

# The library under AddressSanitizer and UndefinedBehaviorSanitizer, for make test-long. Its page conversion is built
# without, because its memory may contain the sanitizer's own. build/sanitized has links to the other files of make
# build.
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=undefined
SANITIZED_OBJECTS := $(LIB_SOURCES:verbs/lib/%.c=build/sanitized/objects/%.o)

build/sanitized/objects/%.o: verbs/lib/%.c $(LIB_HEADERS)
	@mkdir -p $(@D)
	@echo CC $<; $(CC) $(LIB_CFLAGS) -O1 $(if $(filter pages/%,$*),,$(SANITIZERS)) $(CFLAGS) -c $< -o $@

build/sanitized/liburdma.so: $(SANITIZED_OBJECTS) $(LIB_PRIVATE) verbs/lib/liburdma.map build/liburdma.d/liburdma-malloc.so
	$(CC) $(SANITIZERS) $(LIB_LDFLAGS) $(LDFLAGS) -o $@ $(SANITIZED_OBJECTS) $(LIB_PRIVATE) -lpthread -ldl
	cp -a build/liburdma.d build/sanitized/ # relative links
	cd build && ln -sfr urdmad urdma udprelay clock.so examples sanitized/

# The allocator that urdma exec preloads. Without builtins, because GCC would let calloc call itself. -z initfirst:
# see begin.
build/liburdma.d/liburdma-malloc.so: verbs/lib/malloc/malloc.c | build/liburdma.d
	$(CC) $(LIB_CFLAGS) -fno-builtin -fvisibility=default $(CFLAGS) -shared -Wl,-z,now -Wl,-z,relro -Wl,-z,initfirst $(LDFLAGS) -o $@ $< -ldl

# The names under which programs look for libibverbs and librdmacm; urdma exec
# puts this directory on LD_LIBRARY_PATH.
build/liburdma.d: verbs/lib/lib.mk
	@mkdir -p $@
	@for name in $(LIB_NAMES); do ln -sf ../liburdma.so $@/$$name; done
	@touch $@
