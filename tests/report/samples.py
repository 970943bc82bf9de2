"""Results to render: one as a real cluster gives it, an empty one, and any that can be."""

from __future__ import annotations

from hypothesis import strategies as st

from replant.inventory.findings import (
    Finding,
    ObjectRef,
    PluginCounts,
    ReadCount,
    ScanResult,
    Severity,
    Verdict,
)

GIB = 2**30

EMPTY = ScanResult(Verdict.NOTHING_TO_DO, "", "", "")


def volume(name: str) -> ObjectRef:
    return ObjectRef("PersistentVolume", name)


def realistic(many: int = 12) -> ScanResult:
    """A cluster in the middle of its way, with so many findings of the most frequent sort."""
    gluster = [
        Finding(
            "RP102",
            Severity.BLOCKER,
            volume(f"gluster-{number}"),
            "The glusterfs plugin was removed in Kubernetes 1.26 and has no CSI migration; "
            "at 1.31 this volume cannot be mounted.",
            "Copy the data to a volume of another driver before the upgrade.",
        )
        for number in range(2)
    ]
    portworx = Finding(
        "RP301",
        Severity.BLOCKER,
        ObjectRef("PersistentVolumeClaim", "orders-db", "shop"),
        "Portworx security is on, but the volume has no secret annotations, "
        "so its driver will refuse to mount it.",
        "kubectl patch pv pvc-9f1 --type merge -p \\\n"
        '  \'{"metadata": {"annotations": {"openstorage.io/auth-secret-name": "px-user-token",\n'
        '    "openstorage.io/auth-secret-namespace": "portworx"}}}\'',
    )
    classes = Finding(
        "RP201",
        Severity.WARNING,
        ObjectRef("StorageClass", "gp2"),
        "The default class still names kubernetes.io/aws-ebs.",
        "replant translate -f gp2.yaml | kubectl replace --force -f -",
    )
    inline = Finding(
        "RP203",
        Severity.WARNING,
        ObjectRef("Deployment", "legacy-wiki", "internal-tools"),
        "The pod template has an inline awsElasticBlockStore volume.",
    )
    migratable = [
        Finding(
            "RP101",
            Severity.INFO,
            volume(f"pvc-{number:05}"),
            "kubernetes.io/aws-ebs is redirected to ebs.csi.aws.com at 1.24 (phase 1).",
        )
        for number in range(many)
    ]
    return ScanResult(
        Verdict.NOT_READY,
        "3 blockers stand between 1.24.17 and 1.31, and 2 warnings want a person.",
        "1.24.17",
        "1.31",
        {
            "kubernetes.io/aws-ebs": PluginCounts(
                "ebs.csi.aws.com", 1204, 48_312 * GIB, 1190, 3, 612, 85
            ),
            "kubernetes.io/portworx-volume": PluginCounts(
                "pxd.portworx.com", 212, 21_200 * GIB, 212, 1, 64, 40
            ),
            "kubernetes.io/vsphere-volume": PluginCounts(
                "csi.vsphere.vmware.com", 37, 1_480 * GIB, 37, 1, 22, 12
            ),
            "kubernetes.io/glusterfs": PluginCounts("", 2, 100 * GIB, 2, 0, 1, 3),
        },
        [*gluster, portworx, classes, inline, *migratable],
        {
            "PersistentVolume": ReadCount(1466, 1455, 11),
            "PersistentVolumeClaim": ReadCount(1450, 1450, 0),
            "Pod": ReadCount(6120, 6119, 1),
        },
    )


NASTY = [
    "", " ", "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "'=1", "a,b",
    'say "hi"', "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&amp;",
    "' onclick='x", '" onclick="x', "]]>", "<!--", "\x00", "\x07\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07", "\x9b31m", "\x7f", "\r\n", "a\nb", "\ufffe", "\uffff", "\ud800",
    "\u202eevil", "\u2028", "\U0001f600\U0001f469\u200d\U0001f680", "日本語", "|", "a | b", "`",
    "``` \n```", "[a](http://b)", "![a](http://b)", "@octocat", "#1", "# title", "- item",
    "1. item", "---", "{0}", "{{", "[red]x", "$x$", "https://example.com/", "y", "~", "1e3", "\\",
    "%s", "x" * 5000,
]  # fmt: skip

TEXTS = st.one_of(
    st.sampled_from(NASTY),
    st.text(max_size=20),
    st.lists(st.sampled_from(NASTY[:-1]), max_size=3).map("".join),
)
NUMBERS = st.integers(0, 2**80)
FINDINGS = st.builds(
    Finding,
    id=st.integers(100, 999).map("RP{}".format),
    severity=st.sampled_from(Severity),
    object=st.builds(ObjectRef, kind=TEXTS, name=TEXTS, namespace=TEXTS),
    reason=TEXTS,
    fix=TEXTS,
)
PLUGINS = st.builds(
    PluginCounts,
    driver=TEXTS,
    volumes=NUMBERS,
    bytes=NUMBERS,
    claims=NUMBERS,
    classes=NUMBERS,
    workloads=NUMBERS,
    nodes=NUMBERS,
)
RESULTS = st.builds(
    ScanResult,
    verdict=st.sampled_from(Verdict),
    summary=TEXTS,
    server_version=TEXTS,
    target_version=TEXTS,
    plugins=st.dictionaries(TEXTS, PLUGINS, max_size=3),
    findings=st.lists(FINDINGS, max_size=6),
    read=st.dictionaries(TEXTS, st.builds(ReadCount, NUMBERS, NUMBERS, NUMBERS), max_size=3),
)
