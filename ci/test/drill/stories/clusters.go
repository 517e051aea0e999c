package stories

// Folders below ci with tests that play stories of clusters.
const (
	scenarios  = Scenarios
	gates      = "cluster/gates"
	talos      = "cluster/talos"
	secrets    = "cluster/secrets"
	layers     = "cluster/layers"
	hypervisor = "cluster/hypervisor"
	teardown   = "cluster/teardown"

	gitopscheck = "gitops/gitopscheck"
)

// whole is a cluster's life through six faults, which belong to several stories.
const whole = "TestAClusterIsCreatedThroughFaultsKeptAndDestroyed"

var clusters = []Story{
	{"webhook-late", "the gate holds until a dry run is answered; the pool is applied once, at the first try",
		also(in(scenarios, whole), in(gates, "TestTheNetworkingGateHoldsUntilTheWebhookIsCalledThrough"))},
	{"webhook-lies", "a ready endpoint alone opens no gate",
		also(in(scenarios, "TestALyingEndpointDoesNotOpenTheGate"), in(gates, "TestTheEngineGateHoldsUntilBothWebhooksAnswer"))},
	{"cert-late", "a webhook's certificate and its kinds are there before its program starts: what a kubelet mounts follows its Secret a minute later", also(
		in(scenarios, whole), in("cluster/layers/postrender", "TestMetalLBHasItsCertificateBeforeItStarts", "TestMetalLBsKindsAreServedBeforeItsProgramsAreSent"),
		in("sandbox/kube", "TestAPodOfAKnownImageIsAProcessWithItsSecretsTokenAndService"))},
	{"crd-lying", "a CRD that the API server has left lying is nudged, and no other",
		in("cluster/kube", "TestACRDThatAnAPIServerLeftLyingIsNudged", "TestOnlyACRDWithAcceptedNamesIsNudgedAndNotTooOften")},
	{"wait-on-nothing", "what does not exist yet is waited for; it neither fails nor passes",
		also(in("cluster/kube", "TestAKindThatIsNotDefinedYetIsWaitedFor"), in(gates, "TestThePlatformGateWaitsForEveryDeclaredNode"))},
	{"bootstrap-noop", "repeated, and verified by etcd's own member list", also(in(scenarios, whole),
		in(talos, "TestABootstrapThatDoesNothingIsRepeated", "TestABootstrapThatNeverDoesAnythingEndsAtTheDeadline"))},
	{"time-late", "a bootstrap waits for the machine's clock", in(talos, "TestABootstrapWaitsForTheClock")},
	{"bootstrap-slow", "a bootstrap gets its time; one that was cut left etcd stopped, and is repeated",
		in(talos, "TestABootstrapThatTakesLongIsWaitedFor", "TestABootstrapWhoseCallWasCutIsRepeated")},
	{"slow-etcd", "an etcd whose image is still pulled is waited for as long as anything goes on, told as that, and never taken for another cluster's; the first one's has the way out for itself",
		also(in(talos, "TestAnImageThatIsPulledSlowlyIsNoGhost", "TestTheFirstEtcdIsAwaitedUntilItsImageIsThere"),
			in("cluster/create", "TestTheWayOutIsLeftToTheFirstEtcd"))},
	{"lost-learner", "a control plane that was cut while it joined etcd joins anew, so that the others get in", in(talos, "TestALearnerThatWasCutJoinsAnew")},
	{"slow-learner", "a control plane that is slow to become a voter is let be, though Talos's log has forgotten that it joins",
		in(talos, "TestALearnerIsLetBeWhoseLogHasForgottenThatItJoins")},
	{"forgotten-bootstrap", "a bootstrap of a run that was killed is waited for, though Talos's log has forgotten it", in(talos, "TestABootstrapOfAnEarlierRunIsWaitedFor")},
	{"vip-flaps", "eight answers in a row before the gate opens", also(in(scenarios, whole), in(gates, "TestAnAddressThatAnswersOnceIsNotSteady"))},
	{"apiserver-restarts", "the gate holds until the virtual IP is steady and the API server of each control plane answers", also(
		in(scenarios, "TestTheGateHoldsUntilEachAPIServerAnswers"), in(gates, "TestTheAPIServerOfEachControlPlaneIsWaitedFor"))},
	{"apiserver-ends", "what the layers' tools ask an API server that restarts waits until one answers, and is asked once", also(
		in(scenarios, "TestTheLayersOutlastAnAPIServerThatRestarts"),
		in("cluster/apiproxy", "TestARequestWaitsForAnAPIThatIsAway", "TestWhatMayHaveBeenDoneIsNotSentAgain", "TestAnAPIThatStaysAwayIsToldInItsOwnForm"))},
	{"kubelet-restarts", "a kubelet that is away for a while is waited for, and what it runs is not started again", also(
		in(scenarios, whole), in("sandbox/kube", "TestAKubeletThatRestartsLeavesContainersAloneAndDoesNothingElse"),
		in("sandbox/kube/agent", "TestWhatNeedsTheKubeletWaitsWhileItIsAway"))},
	{"dns-late", "the platform ends with a pod of the cluster's DNS, so that no layer asks for a name before", also(
		in(gates, "TestThePlatformGateWaitsForAPodOfCoreDNS"), in("sandbox/kube/services", "TestTheDNSRefusesWithoutAPodOfCoreDNS"))},
	{"extra-mounts", "machines share Longhorn's folder with its pods wherever its data is, and before they have storage", also(
		in(scenarios, "TestOneMachineIsAClusterWithoutStorage"), in("cluster/talos/machineconfig", "TestFurtherDisksAreVolumes"),
		in("sandbox/kube", "TestAPodSharesMountsOfNoFolderThatItsMachineDoesNotShare"))},
	{"ghosts", "a machine that remembers another cluster is named within the deadline",
		also(in(scenarios, "TestAGhostIsNamedWithTheWayOut"), in(talos, "TestAGhostIsNamedWithinTheDeadline"))},
	{"false-ghost", "an etcd that is slow or full is named for what it is; to destroy is no advice where data may be alive",
		in(talos, "TestAConfiguredControlPlaneWhoseEtcdDoesNotComeBackIsNoGhost", "TestAnAlarmIsNamedWithItsCureAndNothingIsGivenUp")},
	{"etcd-alarm", "an alarm of etcd ends the run at once, with its cure, and nothing is given up",
		in(talos, "TestAnAlarmIsNamedWithItsCureAndNothingIsGivenUp")},
	{"dhcp-drift", "declared and live address are named",
		also(in(scenarios, "TestAMachineAtAnotherAddressIsNamed"), in(talos, "TestADriftedMachineIsNamed"))},
	{"flux-needs-secret", "Flux's secrets wait for the engine's store, and its source for them; on the way back gitops goes first; the hand-over is checked", also(
		in(scenarios, "TestRefusedGitCredentialsEndTheHandOverInFluxsWords"), in(layers, "TestFluxGoesBeforeTheEngine"),
		in("cluster/run", "TestAWaitEndsWhenTheLayerFailsThatItWaitsFor"))},
	{"cidr-nonsense", "refused before anything runs: all mistakes, a line each with the fix", also(
		in(scenarios, "TestAnInvalidDescriptionStartsNothing"), in("cluster/config", "TestEveryMistakeIsNamedWithItsLineAndItsFix"),
		in(e2e, "TestAnInvalidDescriptionRunsNothing"))},
	{"two-clusters", "what new-cluster describes has no address, id, name or secret of another; both come up, and one goes alone", also(
		in(scenarios, "TestNewSandboxes"), in("cluster/newcluster", "TestClustersOfARepositoryNeverTouch"), in("sandbox/furnish", "TestNoTwoSandboxesShareASecret"))},
	{"empty-repository", "what gitops-repo renders is followed by a real Flux to the end, and create ends with it",
		in(scenarios, "TestARenderedRepositoryIsAllThatAClusterNeeds", "TestARenderedRepositoryLivesOnSOPSAlone")},
	{"infisical-moods", "outlasted within a deadline, or the path is named and never a value", also(in(scenarios, whole),
		in(secrets, "TestInfisicalMoodsThatPassAreWaitedFor", "TestInfisicalMoodsThatStayAreNamedWithThePath", "TestAConnectionThatHangsEndsAtTheDeadline"))},
	{"missing-secrets", "all that are missing are named at once, and nothing starts",
		in(scenarios, "TestMissingSecretsAreAllNamedAndNothingStarts")},
	{"namespace-editor", "who may edit or administer one namespace cannot ask for secrets or give Flux anything to apply, a store serves its own namespaces alone, and no identity in the cluster reads what opens it", also(
		in(scenarios, "TestASandboxOfBeforeTheIdentitiesIsTakenOver"), in("sandbox/kube", "TestAnEditorOfANamespaceGetsNothingOfAStore"), in("cluster/layers/postrender", "TestNoRoleOfANamespaceGetsTheOperatorsKinds"),
		in("cluster/secrets", "TestAnIdentityInTheClusterThatSeesTooMuchIsRefused", "TestTheSecretsOfAnOlderClusterAreCopiedToWhereItsIdentitiesReadThem",
			"TestACopyThatWasInterruptedIsCompleted"),
		in(layers, "TestANamespacesEditorGivesFluxNothingToDo", "TestTheControllersHaveNoRightsButToImpersonate"))},
	{"hidden-secrets", "each value that may not be read and each secret that may not be seen is named at once, with the permission that is needed, before the first machine; what is not needed may stay hidden", also(
		in(scenarios, "TestWhatInfisicalHidesOrHoldsBackIsNamedBeforeAnyMachine"),
		in(secrets, "TestAllThatIsHiddenIsNamedAtOnceWithThePermissionThatIsNeeded", "TestWhatIsNotNeededMayStayHidden", "TestAPKIThatMayNotBeReadIsNotMadeAnew"))},
	{"approval-policy", "a change that waits for an approval is not taken for done, and who may not keep what opens a cluster is told before the first machine", also(
		in(scenarios, "TestWhatInfisicalHidesOrHoldsBackIsNamedBeforeAnyMachine", "TestWhoMayNotKeepWhatOpensTheClusterMakesNone"),
		in("cluster/create", "TestWhatNeedsNoMachineIsKeptBeforeTheFirst"), in(secrets, "TestAChangeThatWaitsForApprovalSaysWhoCanHelpAndIsGoneOnWithWhenApproved"))},
	{"secret-exists", "created or updated, whichever it needs; other errors are not swallowed", also(
		in(scenarios, "TestCredentialsAreKeptAgain"), in(secrets, "TestKeepWritesOnlyWhatDiffers", "TestOtherAnswersToKeepAreErrors"))},
	{"no-infisical", "a cluster is made from SOPS files alone; a PKI that could not be kept is not made on the way",
		also(in(scenarios, "TestAClusterWithoutInfisical"), in(secrets, "TestWithoutInfisicalAllThatIsMissingIsNamedAtOnce"))},
	{"wrong-age-key", "one clear line; nothing decrypted, nothing started", in(secrets, "TestWrongAgeKey", "TestATamperedFileIsRefused")},
	{"pki-race", "two first runs end with one PKI, and one that is stored is never overwritten",
		in(secrets, "TestTwoThatMakeASecretAtOnceEndWithTheSame", "TestASecretThatIsThereIsNeverReplaced")},
	{"proxmox-moods", "tried again where that is safe; else the task's own message",
		in(scenarios, whole, "TestAFailedCloneIsToldInProxmoxsWordsAndTheNextCreateGoesOn")},
	{"storage-lock", "the machines are applied again where a lock of Proxmox's was in the way; one that stays is named, and no machine is started twice",
		in(scenarios, "TestAStoragesLockIsWaitedForOrNamed")},
	{"two-at-once", "the second is refused at once and told who holds the lock", in(scenarios, "TestCreateGoesOnAfterItWasKilledAndInterrupted")},
	{"half-way", "the next call goes on, after any interruption at any instant of `create`, `destroy` or `nuclear-wipe`; [reliability.md](reliability.md)",
		also(in(scenarios, "TestARunGoesOnAfterAnyInterruption", "TestCreateGoesOnAfterItWasKilledAndInterrupted", "TestDestroyRemovesWhatAKilledCreateLeft"),
			in("cluster/layers/state", "TestALocalStateThatWasCutOffGivesWayToItsNewestCopy"))},
	{"proxmox-tls", "Proxmox is known by its CA or its fingerprint, also for the provider; another certificate is refused before anything is changed", also(
		in(scenarios, "TestProxmoxIsTrustedByFingerprint"), in(layers, "TestOnlyProxmoxsProviderIsGivenProxmoxsAuthority"),
		in(hypervisor, "TestProxmoxIsKnownByItsAuthorityOrByTheFingerprint"))},
	{"tool-sees-all", "a provider that reads its own environment and its parents', and asks for more, finds the secrets of its layer and no others", also(
		in("cluster/run", "TestAProviderSeesNothingButItsLayersSecrets", "TestEachLayerIsGivenItsOwnSecretsAndNoOthers"),
		in("base/nodump", "TestAnotherProcessOfTheUserCannotReadTheEnvironment"))},
	{"changed-download", "a chart, a CRD or a provider with another byte than pinned, or than at the first use, is refused", also(
		in("cluster/layers/charts", "TestWhatIsPinnedIsFetchedAndNothingElse", "TestWhatIsNotPinnedIsWhatTheFirstUseFound"),
		in(layers, "TestAProviderThatIsNotTheOneOfTheFirstUseIsNotInstalled"))},
	{"helm-lock", "a release that a kill left unfinished is freed before the apply", in(scenarios, "TestCreateGoesOnAfterItWasKilledWhileHelmInstalled")},
	{"s3-lock", "the same engine frees what its dead run held; any other is told who, since when, and how to unlock", also(
		in(scenarios, "TestAKilledRunLocksNobodyOutWhoMayKnowThatItIsDead"), in("cluster/layers/state", "TestALockIsTakenOverOnlyFromADeadProcess", "TestAPersonWithOpenTofuIsKeptOutAndNotTakenForADeadRun",
			"TestALockThatIsAnothersMeanwhileIsNotRemoved"))},
	{"same-name-twice", "two repositories with a cluster of one name, on one engine or in one bucket: each call in the second is refused, names both owners, and changes nothing",
		also(in("cmd/castle-cluster", "TestTwoRepositoriesWithAClusterOfOneNameLeaveEachOtherAlone", "TestASandboxIsNotResetByAnotherOfItsName",
			"TestAWipeKnowsItsClusterWithoutInfisical"),
			in("cluster/layers/state", "TestTwoRepositoriesWithOneNameAreToldApart", "TestStatesWithoutARecordAreTheirsWhoseKeyOpensThem",
				"TestOfTwoFirstCreatesAtOnceOneOwnsTheBucket"))},
	{"node-leaves", "what speaks against it is told first; drained, out of etcd, wiped, VM, state and Node removed, after any interruption, too",
		also(in("cluster/removenode", "TestTheNextCallEndsWhatAnInterruptedOneHasBegun"),
			in(scenarios, "TestAWorkerLeaves", "TestControlPlanesLeave", "TestANodeLeavesThatIsKilledWhileToolsWork"),
			in(talos, "TestAMemberIsTakenOutThoughAnotherHasJustComeBack"))},
	{"all-at-once", "nodes whose VMs are changed are drained and restarted one at a time, after any interruption, too",
		in(scenarios, "TestNodesAreRestartedOneAtATime")},
	{"patched", "a changed machine configuration goes to one node after the other while the cluster is well, with a restart only where Talos asks for one", also(
		in(scenarios, "TestAPatchGoesToOneNodeAfterTheOther"), in("cluster/restart", "TestASickNodesTurnComesFirstAndWaitsForNothing"))},
	{"one-machine", "one machine is a cluster: its restart says what is away meanwhile; storage goes by its owner's word alone", also(
		in(scenarios, "TestOneMachineIsAClusterWithoutStorage"), in("cluster/restart", "TestWhatIsAwayWithANodeIsKnown"))},
	{"two-hosts", "each machine is cloned from its own host's template; what would lose a disk is refused", also(
		in(scenarios, "TestMachinesStandOnTwoHostsWithDisksAndAVLAN"), in("cluster/config", "TestEachNodeIsClonedFromATemplateOfItsHostOrTheOneForAll"))},
	{"own-network", "another CNI comes with the machines, before any pod that needs it, and the nodes are Ready when it is", also(
		in(scenarios, "TestAnotherCNIComesWithTheMachines"), in("cluster/talos/machineconfig", "TestAnotherCNIComesWithTheControlPlanes"))},
	{"renamed-node", "what would remove or replace a machine is listed, and refused until it is typed by name", also(
		in(scenarios, "TestCreateTakesNoMachineAwayUnasked"), in("cluster/platform", "TestWhatTakesMachinesDownOrAwayIsRefusedUnlessItWasTypedByName"))},
	{"vm-exists", "machines of the cluster's own that no state knows are imported and do not notice; somebody else's VM is named and left alone",
		in(scenarios, "TestAClusterWhoseStatesAreLostIsAdopted", "TestSomebodyElsesVMAtTheIDOfANodeIsLeftAlone")},
	{"foreign-vm", "where a node's id was given to somebody else's VM, `create` and `destroy` name it and touch nothing", also(
		in(scenarios, "TestSomebodyElsesVMInTheOneOfANodeIsLeftAlone"), in(hypervisor, "TestAVMIsTheClustersByIDNameAndTagTogether"))},
	{"wipe-guards", "what has the cluster's id and its tag goes, and nothing else; without the typed name it is listed", also(
		in(scenarios, "TestWipe"), in(hypervisor, "TestAWipeTakesWhatHasTheClustersIDAndItsTag", "TestAVMIsRemovedAsItWasListed"))},
	{"role-as-name", "a VM is the cluster's by the tag castle-NAME alone, whatever a cluster is called; VMs that an earlier castle tagged with bare words are tagged anew in place, and neither restarted nor replaced", also(
		in(scenarios, "TestVMsThatAnEarlierCastleTaggedAreTaggedAnewInPlace"), in(hypervisor, "TestAVMIsTheClustersByIDNameAndTagTogether", "TestAWipeTakesWhatHasTheClustersIDAndItsTag"),
		in("cluster/config", "TestTheTagsOfAVMSayWhoseItIs", "TestANameThatIsATagOfOtherClustersVMsIsReserved"))},
	{"old-note", "what one machine had begun and another one finished is taken into the state; a note of begun VMs removes nothing that has the cluster's tag, runs, or does not fit the states", also(
		in(scenarios, "TestAnOldNoteTakesNoVMAway"), in(hypervisor, "TestAnOldNoteRemovesNothingButAClone"),
		in("cluster/layers/state", "TestTheNoteOfUnfinishedVMsIsKeptWithTheStates", "TestANoteThatDoesNotFitTheStatesSaysNothing", "TestANoteOfThisMachineAloneSaysNothingOfStatesInS3"))},
	{"disk-stays", "disks that a storage did not let go of when their VM was removed are named with what removes them, also before the next VM of that id; those of other VMs are not, and no removal takes a disk that the VM's configuration does not name", also(
		in(scenarios, "TestDisksThatStayBehindAreNamed", "TestAWipeNamesDisksThatStayBehind", "TestAWorkerLeaves"),
		in(hypervisor, "TestDisksThatStayBehindAreNamedWithTheirCureAndNobodyElsesAre", "TestADiskThatNoConfigurationOfTheClustersNamesStays", "TestAVMIsRemovedAsItWasListed", "TestATokenThatSeesNoDisksDoesNotSayThatTheyAreGone"),
		in("cluster/preflight", "TestWhatIsWrongIsToldOnceAndWithItsFix"))},
	{"destroy-hangs", "a cluster that is dead in part, or whose API is silent, is removed all the same within a deadline; what went with its machines is listed", also(
		in(scenarios, "TestDestroyOfAClusterThatIsHalfDeadAndOfOneThatIsSilent"), in(teardown, "TestWhatHoldsIsNamedOnceNothingGoesAnyMore"))},
	{"flux-fights-destroy", "Flux goes first and is waited for, then load balancers and volumes; nothing is stuck", also(
		in(scenarios, whole), in(teardown, "TestWhatHoldsIsNamedOnceNothingGoesAnyMore", "TestWhatOutlivesTheClusterIsRemoved"))},
	{"doctor", "what is wrong is told at once, each with its fix, and `create` does not begin with it", also(
		in(scenarios, "TestDoctorNamesAllThatIsWrong"), in("cluster/preflight", "TestWhatIsWrongIsToldOnceAndWithItsFix"))},
	{"proxmox-privileges", "the documented role is enough; a privilege that is missing is named with its path, before anything is made or removed", also(
		in(scenarios, "TestDoctorNamesAllThatIsWrong"), in(hypervisor, "TestTheDocumentedRoleHasThePrivileges", "TestATokenThatMustNotRemoveVMsIsToldBeforeAnyGoes"))},
	{"mixed-faults", "faults that are mixed at random over `destroy` and `create` leave a complete cluster", in(scenarios, "TestMixedFaultsAreOutlasted", "TestTheFirstMixMeetsWhatItsStoryIsHeldBy")},

	{"slow-uplink", "deadlines follow what is being pulled, and that is said", also(
		in("cluster/gates", "TestADeadlineFollowsTheImagesThatArrive", "TestAPullThatDoesNotGoOnIsNotWaitedForForEver"),
		in("cluster/kube", "TestWhatIsPulledIsReadFromTheKubeletsEvents"),
		in("sandbox/profile", "TestPullsShareOneLine"), in("sandbox/talos", "TestAMachinePullsWhatItRunsByItself"))},
	{"refused-images", "an image that a registry refuses is named with its words, by the gate that waits for it, and keeps no wait alive", also(
		in(scenarios, "TestWhatDockerHubRefusesIsToldAndOutlasted", "TestARegistryWithoutTLSIsAskedAsItsOwnMirrorAlone"),
		in("cluster/gates", "TestWhatARegistryRefusesIsToldAndKeepsNoWaitAlive"),
		in("cluster/kube", "TestWhatIsPulledIsReadFromTheKubeletsEvents"))},
	{"volumes-late", "storage is there when a pod has run with a volume, not when its manager runs", also(
		in(scenarios, whole),
		in("cluster/gates", "TestAPodRunsWithAVolumeOfTheClass", "TestTheStorageGateWantsTheDefaultClassAndManagersAndDriversThatRun"),
		in("sandbox/kube", "TestAPodComesAndGoesWithItsVolume"))},
	{"silent-address", "a load balancer's address is there when the API answers at it; one at which nobody does is told, and ends no run, since what stands in between need not be the cluster's", also(
		in(scenarios, whole),
		in("cluster/gates", "TestTheAPIAnswersAtALoadBalancersAddressOfThePool", "TestAnAddressAtWhichNobodyAnswersIsTold"),
		in("sandbox/kube/services", "TestNobodyAnswersForALoadBalancerWithoutASpeaker"))},
	{"wrong-template", "a template of another Talos version, or without an extension, is noticed before anything is applied", also(
		in(scenarios, "TestAMachineFromAnotherTemplateIsNamed"),
		in("cluster/talos", "TestMachinesFromAnotherTemplateAreNamedAndNotConfigured", "TestAnImageThatIsNotTheFactorysIsKnownByItsExtensions"))},
	{"kept-machines", "machines that castle did not make are installed from what is described, and wiped under the cluster's own PKI alone; then they wait for another configuration", also(
		in(scenarios, "TestMachinesThatAreThereBecomeAClusterAndAreGivenBack"),
		in("cluster/talos", "TestMachinesThatAreThereAreInstalledAndGivenBack", "TestAMachineOfAnotherClusterIsNotGivenBack", "TestAnInstalledTalosHasToBeTheOneThatIsDescribed"))},
	{"crd-with-cr", "custom resources beside the chart that defines them are found before a cluster fails on them", in(gitopscheck, "TestCustomResourcesBesideTheirChartAreFound")},
	{"heavy-gate", "a heavy chart in a gate that the rest waits for is found", in(gitopscheck, "TestAHeavyChartInAGateIsFound")},
	{"wrong-port", "an app's way from Ingress to container port is followed before it is deployed", in(gitopscheck, "TestARouteThatEndsNowhereIsFound")},
}
