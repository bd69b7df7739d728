#!/bin/sh
# Runs maintenance for every tenant of a fleet: archives idle conversations, then
# collects unreferenced content, including that of archived ones, and sweeps the bucket.
# It may be killed at any time and run on several machines at once. A failure of one
# tenant does not stop the others; it sets the exit code.
set -u

idle=${HOUSE_IDLE:-30d}
grace=${HOUSE_GRACE:-24h}
failed=0
tenants=$(stet fleet tenants) || exit 1
for tenant in $tenants; do
	export STET_TENANT="$tenant"
	if [ -n "${STET_BLOBS:-}" ]; then
		stet --quiet archive --idle "$idle" || failed=1
	fi
	stet --quiet gc --grace "$grace" || failed=1
done
exit $failed
