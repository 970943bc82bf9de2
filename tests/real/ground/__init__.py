"""What the tests on real Kubernetes stand on. No test lives here.

needs        what a machine must have, and what this one lacks
programs     builds the Go programs into a cache, once; takes Debian's for the node
run          one run's folder, and clearing away what killed runs left
processes    children that die with the tests, and waiting for things to become so
api          plain requests to an API server
controlplane etcd, kube-apiserver, kube-controller-manager, kube-scheduler
cloud        moto's EC2 server (ec2_server), and what it says of disks
volumes      volumes, claims and pods for tests
nodes        light nodes, played as a kubelet would write them
machine      the real node: containerd, kubelet, and the one image (image) that its pods run
hooks        a user's command that switches gates, and the test at its other end
drivers      the CSI driver and its attacher, from ../csi
webhook      an admission webhook that lets nobody create PersistentVolumes
"""
