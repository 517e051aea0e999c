package stories

// Folders below ci with tests that play stories of publishing.
const (
	e2e     = EndToEnd
	publish = "publish"
)

var publishing = []Story{
	{"static-tag", "a tag with other content is never overwritten; `latest` is refused", also(
		in(e2e, "TestATagWithOtherContentIsNeverOverwritten"),
		in(publish, "TestATagWithOtherContentIsRefusedAndBothDigestsAreNamed", "TestTheTagLatestIsNeverPublished"))},
	{"dirty-tree", "refused, files listed; shallow, detached and submodules handled or refused with the fix", also(
		in(e2e, "TestADirtyTreeIsRefusedWithItsFiles"),
		in("publish/worktree", "TestEverythingThatIsNotCommittedIsListedAtOnce", "TestAMissingSubmoduleIsRefused", "TestAMovedSubmoduleIsRefused",
			"TestAShallowCloneIsFineAndNoted", "TestAShallowCloneIsRefusedWhereTheSiteReadsTheHistory", "TestADetachedHeadIsFine"))},
	{"push-race", "20 publishers at once: 20 commits, none lost; a decision of somebody else is a conflict", also(
		in(publish, "TestTwentyPublishersAtOnceLoseNoCommit"),
		in("publish/gitops", "TestPublishersAtOnceEachMakeTheirCommit", "TestADecisionMadeMeanwhileIsAConflict"))},
	{"yaml-sed", "one reference changes, every other byte stays",
		in("publish/manifest", "TestGolden", "FuzzBump", "TestAnEditThatChangesMoreFailsTheLastCheck")},
	{"manifest-before-image", "the manifest is committed after the registry's confirmation",
		in(publish, "TestTheManifestIsCommittedOnlyAfterTheRegistryConfirmedTheDigest")},
	{"registry-moods", "401, 429, 500 and a cut connection: outlasted, or one clear error and an untouched manifest",
		in(publish, "TestAPassingMoodOfTheRegistryIsOutlasted", "TestARegistryThatStaysInItsMoodGivesOneErrorAndLeavesTheManifest")},
	{"ambiguous-terms", "a tag spelt in several ways is settled in the exported copy and named once; ten builds give the same bytes", also(
		in("publish/site/sitesettle", "TestASettledSiteIsTheSameInEachBuild", "TestTermsWithOneAddressAreNamed"),
		in(e2e, "TestTheSameCommitGivesTheSameDigestWithAColdCache"))},
	{"headers-break", "headers fit what the built pages load; a browser sees no violation; the report shows the policy", also(
		in("publish/site/siteheaders", "TestGoldenSites"),
		in("publish/site/browsercheck", "TestWhatThePolicyRefusesIsFound", "TestASiteInOrderHasNoFindings"),
		in(e2e, "TestTheSameCommitGivesTheSameDigestWithAColdCache"))},
	{"moved-base-image", "another base under the same commit is named in the conflict; a rebuild gets a tag of its own",
		in("publish/imagepush", "TestATagMadeFromOtherInputsIsRefusedAndTheInputIsNamed", "TestARebuildTakesTheNextTagThatTheRegistryDoesNotHave")},
	{"pushed-first", "an image that somebody pushed under a commit's tag before, with castle's annotations copied, " +
		"is neither rolled out nor pinned; a rebuild gets a tag of its own", also(
		in("publish/imagepush", "TestAnImageThatOnlySaysThatItWasMadeFromTheSameInputsIsRefused",
			"TestAnIndexThatOnlySaysThatItWasMadeFromTheSameInputsIsRefused"),
		in(publish, "TestAnImageThatSomebodyPushedFirstIsNotPublished",
			"TestAnotherBuildOfACommitThatIsPublishedOrProposedIsThatImage"),
		in("publish/rollback", "TestWhatTheRegistryHasOfAnUnrecordedDigestIsNeitherRecordedNorPinned"))},
	{"poisoned-cache", "a site whose code writes over every cache that it can reach changes no byte of another image; " +
		"the commits of one site keep their caches", also(
		in(e2e, "TestASiteCannotChangeWhatAnotherOnePublishes"),
		in("publish/worktree", "TestNoOtherSiteGetsTheCacheOfASite", "TestTheCommitsOfASiteShareACache"))},
	{"image-swapped", "an image that was swapped, changed or signed with another key does not pass `verify-blog`, which says what is wrong; the manifest names no image before it is signed", also(
		in("publish/verify", "TestWhatIsMissingOrWrongIsSaid", "TestAPinnedDigestIsTheOneThatCounts"),
		in(publish, "TestAnImageIsSignedBeforeTheManifestNamesIt"))},
	{"republish", "same digest, no second commit; the same even where two builds of the commit differ",
		in(e2e, "TestAPublishedPageIsServedFromThePublishedImage", "TestACommitWhoseBuildsDifferIsPublishedOnce")},
	{"cold-runner", "a runner without caches publishes in seconds, by a released image or a program that carries only what it needs; `make bench-cold` measures it",
		in(e2e, "TestAReleaseCompilesNothing")},
	{"secrets-leak", "canaries in no log, engine state, image or history, also where the tools trace all and programs die with their stacks", also(
		in(scenarios, "TestNothingLeaksWhereToolsTellAll"),
		in(e2e, "TestNoSecretIsLeftAnywhere"),
		in(publish, "TestCredentialsAreInNoErrorNoReportAndNoFile"))},
}
