//! Requests for reviews of tasks' changes: drafts, and sending them once.

use super::parts::HubParts;
use crate::{
    error::HubError,
    tasks::{ReviewRecipient, TaskReviews},
};
use a2a_hub_clock as clock;
use a2a_hub_core::{
    access_control::Caller,
    review::{
        MAX_COMMENTS, MAX_SENT, Review, ReviewRefused, ReviewSubmission, checked_text,
        message::{CommentText, review_message},
    },
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::TaskId,
    message::{Message, Role},
    operation::{
        Answer, NewReviewComment, ReviewAnswer, ReviewReport, ReviewRequest, SendMessage,
        SentReview, Wait,
    },
    question::QUESTION,
};
use futures::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;

/// Sends a message with the rights of the caller, as if the caller sent it.
pub(super) type SubmitMessage =
    Box<dyn Fn(Box<SendMessage>) -> BoxFuture<'static, Result<(), HubError>> + Send + Sync>;

/// Carries out a request. It runs to its end even if the client disconnects: a review that is
/// being sent must become a sent one.
pub(super) async fn perform(
    hub: &Arc<HubParts>,
    caller: &Caller,
    request: ReviewRequest,
    submit: SubmitMessage,
) -> Result<Answer, HubError> {
    let (parts, caller) = (Arc::clone(hub), caller.clone());
    let work = async move {
        let tasks = &parts.tasks;
        let holder = tasks.shown_worktree(request.task().clone()).await?;
        let _guard = parts.review_locks.lock(&holder).await;
        let (worktrees, owner) = (tasks.worktrees()?, caller.principal.identity());
        let reviews = TaskReviews { tasks, worktrees, holder, owner };
        let operations = ReviewOperations { caller: &caller, reviews, submit };
        operations.perform(request).await.map(Answer::Review)
    };
    hub.tasks.see_through(Box::pin(work)).await
}

/// The reviews of one worktree by the caller. The lock of the task is held.
struct ReviewOperations<'h> {
    caller: &'h Caller,
    reviews: TaskReviews<'h>,
    submit: SubmitMessage,
}

impl ReviewOperations<'_> {
    async fn perform(&self, request: ReviewRequest) -> Result<ReviewAnswer, HubError> {
        match request {
            ReviewRequest::Show { .. } => {}
            ReviewRequest::Comment { comments, .. } => self.comment(comments).await?,
            ReviewRequest::Remove { comments, .. } => {
                let mut draft = self.draft().await?;
                draft.remove(&comments)?;
                match draft.comments.is_empty() {
                    true => self.reviews.forget(&draft).await?,
                    false => self.reviews.store(&draft).await?,
                }
            }
            ReviewRequest::Discard { .. } => self.reviews.forget(&self.draft().await?).await?,
            ReviewRequest::Send { review, text, .. } => {
                return Ok(ReviewAnswer::Sent(self.send(review, text).await?));
            }
        }
        self.report().await
    }

    /// The draft and the review that was sent last.
    async fn report(&self) -> Result<ReviewAnswer, HubError> {
        let reviews = &self.reviews;
        let stored = reviews.settled().await?;
        let (drafts, sent): (Vec<_>, Vec<_>) = stored.into_iter().partition(Review::is_draft);
        let (draft, sent) = (drafts.into_iter().next_back(), sent.into_iter().next_back());
        let now = match draft.is_some() || sent.is_some() {
            true => reviews.changes_now().await?,
            false => {
                // A task without a worktree is refused, also if nobody reviewed it.
                reviews.worktrees.find(reviews.holder.as_str())?;
                None
            }
        };
        let mut report = ReviewReport { task_id: reviews.holder.clone(), draft: None, sent: None };
        if let Some(draft) = draft {
            report.draft = Some(reviews.info(&draft, now.as_ref()).await?);
        }
        if let Some(sent) = sent {
            report.sent = Some(reviews.info(&sent, now.as_ref()).await?);
        }
        Ok(ReviewAnswer::Report(Box::new(report)))
    }

    /// The draft.
    ///
    /// # Errors
    /// None exists.
    async fn draft(&self) -> Result<Review, HubError> {
        let stored = self.reviews.settled().await?;
        let draft = stored.into_iter().rfind(Review::is_draft);
        draft.ok_or_else(|| self.no_draft())
    }

    fn no_draft(&self) -> HubError {
        let task = &self.reviews.holder;
        let why = format!(
            "you have no draft of a review of task `{task}`; begin one: `a2a-hub task review add {task} --file PATH --line N TEXT`"
        );
        let refusal = A2aError::new(ErrorKind::UnsupportedOperation, why);
        refusal.with(json!({ "reason": "no_review" })).into()
    }

    async fn comment(&self, comments: Vec<NewReviewComment>) -> Result<(), HubError> {
        let stored = self.reviews.settled().await?;
        let draft = stored.into_iter().rfind(Review::is_draft);
        let mut draft = draft.unwrap_or_else(|| {
            let TaskReviews { holder, owner, .. } = &self.reviews;
            Review::draft(holder.clone(), owner.clone(), clock::now())
        });
        // First of all, so that a text of megabytes, or a million comments, costs nothing.
        if comments.len() > MAX_COMMENTS {
            return Err(ReviewRefused::TooManyComments(self.reviews.holder.clone()).into());
        }
        for comment in &comments {
            checked_text(&comment.text)?;
        }
        draft.add(self.reviews.anchor(comments).await?)?;
        Ok(self.reviews.store(&draft).await?)
    }

    /// Sends the draft, or answers with the task that got it before.
    async fn send(
        &self,
        named: Option<String>,
        text: Option<String>,
    ) -> Result<SentReview, HubError> {
        let reviews = &self.reviews;
        let text = text.map(|text| checked_text(&text)).transpose()?;
        let stored = reviews.settled().await?;
        let found = match &named {
            Some(id) => stored.iter().find(|review| review.id == *id),
            None => stored.iter().rfind(|review| review.is_draft()),
        };
        let Some(review) = found else { return Err(self.no_draft()) };
        let mut review = review.clone();
        if let Some(submission) = review.submission() {
            return Ok(self.sent(&review, submission, true));
        }
        let (message, submission, send) = self.compose(&review, text.as_deref()).await?;
        review.begin_sending(submission.clone());
        reviews.store(&review).await?;
        let sent = (self.submit)(Box::new(send)).await;
        let has_arrived = match &sent {
            Ok(()) => true,
            // The answer failed, and the message may be stored all the same.
            Err(_) => reviews.has_arrived(&submission).await?,
        };
        review.settle(has_arrived, clock::now());
        if let Err(why) = reviews.store(&review).await {
            // The next request for the review finds out that it arrived.
            tracing::warn!(task = %reviews.holder, %why, "cannot note that a review was sent");
        }
        if !has_arrived {
            sent?;
        }
        let old = stored.iter().filter(|review| !review.is_draft()).rev().skip(MAX_SENT - 1);
        for review in old {
            reviews.forget(review).await?;
        }
        tracing::info!(task = %reviews.holder, by = %self.caller.principal, to = %submission.task, message = %message, "a review was sent");
        Ok(self.sent(&review, &submission, false))
    }

    fn sent(&self, review: &Review, submission: &ReviewSubmission, repeated: bool) -> SentReview {
        SentReview {
            review_id: review.id.clone(),
            task_id: self.reviews.holder.clone(),
            sent_task_id: submission.task.clone(),
            comments: review.comments.len(),
            repeated,
        }
    }

    /// The message of a review, how it is recognised in the store, and its request.
    async fn compose(
        &self,
        review: &Review,
        text: Option<&str>,
    ) -> Result<(String, ReviewSubmission, SendMessage), HubError> {
        let reviews = &self.reviews;
        let recipient = reviews.recipient().await?;
        let now = reviews.worktrees.changed_files(reviews.holder.as_str(), None).await?;
        let statuses = reviews.statuses(review, Some(&now)).await?;
        let comments: Vec<_> = review
            .comments
            .iter()
            .zip(statuses)
            .map(|(comment, status)| {
                let anchor = comment.anchor.as_ref();
                let lines = anchor.and_then(|anchor| anchor.lines.as_ref()).map(|lines| {
                    let range = status.now.unwrap_or(lines.range);
                    (lines.side, range, &lines.quoted[..])
                });
                CommentText {
                    file: anchor.map(|anchor| &anchor.file[..]),
                    lines,
                    text: &comment.text,
                    outdated: status.outdated,
                }
            })
            .collect();
        let mut message = Message::text(Role::User, review_message(text, &comments));
        let message_id = message.message_id.clone();
        let (task, is_new_task, mut send) = match recipient {
            ReviewRecipient::NewTask { agent, context, directory } => {
                message.context_id = Some(context);
                let mut send = SendMessage::new(message, None)?;
                let task = TaskId::fresh();
                send.agent = Some(agent);
                send.working_directory = Some(directory.clone());
                let facts = send.message.metadata.get_or_insert_default();
                facts.insert("workingDirectory".to_owned(), json!(directory));
                send.new_task_id = Some(task.clone());
                (task, true, send)
            }
            ReviewRecipient::Question { task, context, question } => {
                message.context_id = Some(context);
                message.task_id = Some(task.clone());
                let facts = message.metadata.get_or_insert_default();
                facts.insert(QUESTION.to_owned(), json!(question));
                (task, false, SendMessage::new(message, None)?)
            }
        };
        send.wait = Wait::No;
        send.history_length = Some(0);
        let submission =
            ReviewSubmission { task, is_new_task, message: message_id.clone(), commit: now.commit };
        Ok((message_id.to_string(), submission, send))
    }
}
