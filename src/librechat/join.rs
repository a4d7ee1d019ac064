//! The target's answer becomes part of the response in which the switch was made: one message with
//! the parts of both agents, as LibreChat stores a handoff of its own.
//!
//! Until then LibreChat has two responses to the same message of the user's, which it shows one at
//! a time. Each step leaves something that LibreChat shows, loses no text, and may be done again:
//!
//! 1. The response takes over the parts, after one that names the answer (`splice::seam`).
//! 2. The answer's own message goes, if it still is what was taken over.
//! 3. The conversation's list of messages forgets it. (LibreChat makes that list anew at its next
//!    save.)
//!
//! Every write is conditional on `updatedAt` as it was read.

use mongodb::{
    Collection,
    bson::{Bson, DateTime, Document, RawDocumentBuf, doc, oid::ObjectId, serialize_to_bson},
    error::Result,
};

use super::{
    AgentId, ConversationKey, Conversations, MessageId, Messages, SwitchCall, ToolNames,
    conversation, splice::seam, turn::scope,
};

/// What belongs together.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The conversation.
    pub key: ConversationKey,
    /// The response in which the switch was made.
    pub response: MessageId,
    /// The target's answer.
    pub answer: MessageId,
    /// The target.
    pub by: AgentId,
}

/// Both messages as they are.
#[derive(Debug)]
pub struct Both {
    response: Option<Document>,
    answer: Option<Document>,
}

impl Both {
    /// Whether there is a response to take anything over.
    #[must_use]
    pub fn has_response(&self) -> bool {
        self.response.is_some()
    }

    /// The response's `_id`.
    #[must_use]
    pub fn response_object(&self) -> Option<ObjectId> {
        self.response.as_ref()?.get_object_id("_id").ok()
    }

    /// Whether LibreChat has saved the answer; it is gone when it was taken over.
    #[must_use]
    pub fn has_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// Whether the response has taken something over.
    #[must_use]
    pub fn is_joined(&self, pair: &Pair) -> bool {
        let content = self.response.as_ref().map(content).unwrap_or_default();
        own_parts(&content, pair) < content.len()
    }

    /// Whether the answer is an error and nothing else, be it taken over or not.
    #[must_use]
    pub fn has_failed(&self, pair: &Pair) -> bool {
        let response = self.response.as_ref().map(content).unwrap_or_default();
        let answer = match &self.answer {
            Some(answer) => content(answer),
            None => response
                .get(own_parts(&response, pair) + 1..)
                .map_or_else(Vec::new, <[_]>::to_vec),
        };
        let is_error = |part: &Bson| {
            let kind = part.as_document().map(|part| part.get_str("type"));
            matches!(kind, Some(Ok("error")))
        };
        !answer.is_empty() && answer.iter().all(is_error)
    }

    /// Whether the answer is still being written, or was stopped.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.answer.as_ref().is_some_and(is_unfinished)
    }

    /// Whether what the response has taken over was unfinished.
    #[must_use]
    pub fn may_go_on(&self) -> bool {
        self.response.as_ref().is_some_and(is_unfinished)
    }

    /// When LibreChat last saved the answer, by its clock.
    #[must_use]
    pub fn answered_at(&self) -> Option<DateTime> {
        let answer = self.answer.as_ref()?;
        answer.get_datetime("updatedAt").ok().copied()
    }

    /// The calls in the answer that switch the conversation once more.
    #[must_use]
    pub fn calls(&self, pair: &Pair, tools: &ToolNames) -> Vec<SwitchCall> {
        let content = self.answer.as_ref().map(content).unwrap_or_default();
        let parts: Vec<RawDocumentBuf> = content
            .iter()
            .filter_map(|part| RawDocumentBuf::try_from(part.as_document()?).ok())
            .collect();
        SwitchCall::all_in(&parts, tools, &pair.key.conversation)
    }
}

impl Messages {
    /// Reads both messages.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn both(&self, pair: &Pair) -> Result<Both> {
        let (response, answer) = tokio::try_join!(
            self.whole(&pair.key, &pair.response),
            self.whole(&pair.key, &pair.answer),
        )?;
        Ok(Both { response, answer })
    }

    /// The steps above. `false`: something has changed since `both` was read; read it again.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn join(
        &self,
        conversations: &Conversations,
        pair: &Pair,
        both: &Both,
    ) -> Result<bool> {
        let (Some(response), Some(answer)) = (&both.response, &both.answer) else {
            return Ok(true);
        };
        let parts = match content(answer) {
            parts if !parts.is_empty() => parts,
            _ => match answer.get_str("text") {
                Ok(text) if !text.is_empty() => vec![doc! { "type": "text", "text": text }.into()],
                _ => Vec::new(),
            },
        };
        let set = taken_over(pair, response, answer, parts);
        if !self.set(response, set).await? {
            return Ok(false);
        }
        let gone = self.documents().delete_one(unchanged(answer)).await?;
        if gone.deleted_count == 0 {
            return Ok(false);
        }
        if let Ok(answer) = answer.get_object_id("_id") {
            conversations
                .collection()
                .update_one(
                    conversation::filter(&pair.key),
                    doc! { "$pull": { "messages": answer } },
                )
                .await?;
        }
        Ok(true)
    }

    /// The response takes over that the target has failed. `false`: it has changed since it was
    /// read, or has taken over something.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn join_failure(&self, pair: &Pair, both: &Both, words: &str) -> Result<bool> {
        let Some(response) = both.response.as_ref().filter(|_| !both.is_joined(pair)) else {
            return Ok(false);
        };
        let failed = doc! { "type": "error", "error": words };
        let content = joined(pair, &content(response), vec![failed.into()]);
        self.set(response, doc! { "content": content }).await
    }

    /// Takes back what was added to the user's message for the target alone: LibreChat saves the
    /// message as the target got it where the target is stopped (v0.8.7, v0.8.8).
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn take_back(
        &self,
        key: &ConversationKey,
        user_message: &MessageId,
        note: &str,
    ) -> Result<()> {
        let Some(message) = self.whole(key, user_message).await? else {
            return Ok(());
        };
        let Some(text) = (message.get_str("text").ok()).and_then(|text| text.strip_suffix(note))
        else {
            return Ok(());
        };
        self.set(&message, doc! { "text": text }).await.map(|_| ())
    }

    async fn whole(&self, key: &ConversationKey, id: &MessageId) -> Result<Option<Document>> {
        let mut filter = scope(key);
        filter.insert("messageId", id);
        self.documents().find_one(filter).await
    }

    async fn set(&self, message: &Document, set: Document) -> Result<bool> {
        let set = doc! { "$set": set };
        let result = self.documents().update_one(unchanged(message), set).await?;
        Ok(result.matched_count == 1)
    }

    fn documents(&self) -> Collection<Document> {
        self.collection().clone_with_type()
    }
}

/// The message as it was read.
fn unchanged(message: &Document) -> Document {
    let field = |name| message.get(name).cloned().unwrap_or(Bson::Null);
    doc! { "_id": field("_id"), "updatedAt": field("updatedAt") }
}

fn is_unfinished(message: &Document) -> bool {
    matches!(message.get_bool("unfinished"), Ok(true))
}

fn content(message: &Document) -> Vec<Bson> {
    message.get_array("content").cloned().unwrap_or_default()
}

/// Where the response's own parts end.
fn own_parts(content: &[Bson], pair: &Pair) -> usize {
    let is_seam = |part: &Bson| {
        let update = part.as_document()?.get_document("agent_update").ok()?;
        Some(update.get_str("runId").ok()? == pair.answer.as_str())
    };
    let found = content.iter().position(|part| is_seam(part) == Some(true));
    found.unwrap_or(content.len())
}

/// The response's own parts, the seam, and then the target's.
fn joined(pair: &Pair, response: &[Bson], answer: Vec<Bson>) -> Vec<Bson> {
    let own = own_parts(response, pair);
    let mut content = response[..own].to_vec();
    let seam = seam(own, &pair.answer, &pair.by);
    content.push(serialize_to_bson(&seam).unwrap_or(Bson::Null));
    let offset = content.len();
    content.extend(answer.into_iter().map(|part| match part {
        Bson::Document(mut part) => {
            part.entry("agentId".to_owned())
                .or_insert_with(|| pair.by.as_str().into());
            for index in ["activity_start_index", "activity_end_index"] {
                if let Some(at) = part.get(index).and_then(number) {
                    part.insert(index, at + i64::try_from(offset).unwrap_or_default());
                }
            }
            Bson::Document(part)
        }
        part => part,
    }));
    content
}

/// What the response is to be: the answer's parts, and what LibreChat counts of a response.
fn taken_over(pair: &Pair, response: &Document, answer: &Document, parts: Vec<Bson>) -> Document {
    let before = content(response);
    let is_first_time = own_parts(&before, pair) == before.len();
    let mut set = doc! { "content": joined(pair, &before, parts) };
    // `updatedAt` by LibreChat's own clock: the response is as new as the answer.
    for name in ["unfinished", "error", "updatedAt", "contextMeta"] {
        if let Some(value) = answer.get(name) {
            set.insert(name, value.clone());
        }
    }
    // LibreChat's search is to read it again.
    if response.contains_key("_meiliIndex") {
        set.insert("_meiliIndex", false);
    }
    let mut attachments = response
        .get_array("attachments")
        .cloned()
        .unwrap_or_default();
    let mut has_more = false;
    for attachment in answer.get_array("attachments").into_iter().flatten() {
        let mut attachment = attachment.clone();
        if let Bson::Document(attachment) = &mut attachment {
            attachment.insert("messageId", pair.response.as_str());
        }
        if !attachments.contains(&attachment) {
            attachments.push(attachment);
            has_more = true;
        }
    }
    if has_more {
        set.insert("attachments", attachments);
    }
    // An answer that was taken over before it was finished has been counted as far as it goes.
    if is_first_time {
        let counts = [response, answer].map(|it| it.get("tokenCount").and_then(number));
        if let [Some(own), Some(more)] = counts {
            set.insert("tokenCount", own + more);
        }
        if let Some(metadata) = metadata(response, answer) {
            set.insert("metadata", metadata);
        }
    }
    set
}

/// `metadata` of v0.8.8: what was used is added up, all else is the answer's.
fn metadata(response: &Document, answer: &Document) -> Option<Document> {
    let more = answer.get_document("metadata").ok()?;
    let own = response.get_document("metadata").cloned();
    let mut sum = own.unwrap_or_default();
    let used = sum.get_document("usage").cloned().unwrap_or_default();
    sum.extend(more.clone());
    if let Some(Bson::Document(usage)) = sum.get_mut("usage") {
        for (name, own) in used {
            let total = match (&own, usage.get(&name)) {
                (own, None) => own.clone(),
                (Bson::Double(own), Some(Bson::Double(more))) => (own + more).into(),
                (own, Some(more)) => match (number(own), number(more)) {
                    (Some(own), Some(more)) => (own + more).into(),
                    _ => more.clone(),
                },
            };
            usage.insert(name, total);
        }
    }
    Some(sum)
}

fn number(value: &Bson) -> Option<i64> {
    match value {
        Bson::Int32(value) => Some((*value).into()),
        Bson::Int64(value) => Some(*value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> Pair {
        Pair {
            key: ConversationKey::new("c".into(), "u".into(), None),
            response: "m1".into(),
            answer: "x".into(),
            by: "B".into(),
        }
    }

    fn set(response: &Document, answer: &Document) -> Document {
        taken_over(&pair(), response, answer, content(answer))
    }

    fn kinds(set: &Document) -> Vec<&str> {
        let parts = set.get_array("content").unwrap().iter();
        parts
            .map(|part| part.as_document().unwrap().get_str("type").unwrap())
            .collect()
    }

    #[test]
    fn the_answers_parts_follow_and_say_whose_they_are() {
        let response = doc! { "content": [{ "type": "text" }, { "type": "tool_call" }] };
        let answer = doc! { "content": [{ "type": "think" }, {
            "type": "activity_label", "activity_start_index": 0, "activity_end_index": 1_i64,
        }] };
        let set = set(&response, &answer);
        assert_eq!(
            kinds(&set),
            [
                "text",
                "tool_call",
                "agent_update",
                "think",
                "activity_label"
            ]
        );
        let content = set.get_array("content").unwrap();
        let label = content[4].as_document().unwrap();
        assert_eq!(label.get_str("agentId").unwrap(), "B");
        assert_eq!(label.get_i64("activity_start_index").unwrap(), 3);
        assert_eq!(label.get_i64("activity_end_index").unwrap(), 4);
    }

    #[test]
    fn what_was_taken_over_is_not_taken_over_twice() {
        let response = doc! { "content": [{ "type": "text" }], "tokenCount": 3 };
        let half = doc! { "content": [{ "type": "think" }], "tokenCount": 4, "unfinished": true };
        let mut once = response.clone();
        once.extend(set(&response, &half));
        assert_eq!(once.get_i64("tokenCount").unwrap(), 7);
        assert!(once.get_bool("unfinished").unwrap());
        let full = doc! {
            "content": [{ "type": "think" }, { "type": "text" }], "tokenCount": 9,
            "unfinished": false,
        };
        let twice = set(&once, &full);
        assert_eq!(kinds(&twice), ["text", "agent_update", "think", "text"]);
        assert!(!twice.contains_key("tokenCount"));
        assert!(!twice.get_bool("unfinished").unwrap());
    }

    #[test]
    fn files_belong_to_the_response_and_what_was_used_is_added_up() {
        let response = doc! {
            "attachments": [{ "file_id": "a", "messageId": "m1" }],
            "metadata": { "usage": { "input": 2, "cost": 0.5 }, "contextUsage": { "runId": "m1" } },
        };
        let answer = doc! {
            "attachments": [{ "file_id": "b", "messageId": "x" }],
            "metadata": { "usage": { "input": 3_i64, "cost": 0.25, "output": 1 },
                "contextUsage": { "runId": "x" } },
        };
        let set = set(&response, &answer);
        let files: Vec<Bson> = vec![
            doc! { "file_id": "a", "messageId": "m1" }.into(),
            doc! { "file_id": "b", "messageId": "m1" }.into(),
        ];
        assert_eq!(set.get_array("attachments").unwrap(), &files);
        assert_eq!(
            set.get_document("metadata").unwrap(),
            &doc! { "usage": { "input": 5_i64, "cost": 0.75, "output": 1 },
            "contextUsage": { "runId": "x" } }
        );
    }
}
