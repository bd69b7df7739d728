#!/bin/sh
# Keeps house for every tenant of a fleet: seals what is idle, then collects what
# nothing refers to any more, what was sealed included, and sweeps the bucket. It may
# be killed at any time and run on several machines at once. One tenant's trouble does
# not keep the others waiting; it shows in the exit code.
set -u

idle=${HOUSE_IDLE:-30d}
grace=${HOUSE_GRACE:-24h}
failed=0
tenants=$(stet fleet tenants) || exit 1
for tenant in $tenants; do
	export STET_TENANT="$tenant"
	if [ -n "${STET_BLOBS:-}" ]; then
		stet --quiet seal --idle "$idle" || failed=1
	fi
	stet --quiet gc --grace "$grace" || failed=1
done
exit $failed
